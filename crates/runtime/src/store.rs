//! The measurement database: the cost of model parts on this machine, kept between runs.
//!
//! SQLite in write-ahead mode: several processes may read and write at once, and a process killed
//! at any moment leaves the last complete transaction.

mod proofs;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

pub use proofs::ProofKey;

/// Environment variable with the path of the store.
const ENV_PATH: &str = "REGRAFT_COST_STORE";
/// Version of the table's layout, in `PRAGMA user_version`.
const SCHEMA: i64 = 1;
/// Marks a database as ours, in `PRAGMA application_id` ("RGFT").
const APPLICATION: i64 = 0x5247_4654;
/// How long to wait for other processes' transactions.
const BUSY: Duration = Duration::from_secs(20);
/// Pause between attempts where SQLite does not wait by itself.
const RETRY: Duration = Duration::from_millis(20);

const CREATE: &str = "CREATE TABLE IF NOT EXISTS measurement (
    machine TEXT NOT NULL, runtime TEXT NOT NULL, threads INTEGER NOT NULL, signature TEXT NOT NULL,
    median_ns INTEGER NOT NULL, spread_ns INTEGER NOT NULL, samples INTEGER NOT NULL,
    context TEXT NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (machine, runtime, threads, signature)) WITHOUT ROWID";
const COLUMNS: &str = "machine, runtime, threads, signature, median_ns, spread_ns, samples, context, updated_at";

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum StoreError {
    /// The database engine failed: a locked, damaged or foreign file, a full disk.
    #[error("measurement store {path}: {source}; if it is damaged, delete it (it is only a cache)", path = .path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    /// The file is some other program's database.
    #[error("{path} is a database, but not a measurement store; choose another path with {ENV_PATH}", path = .path.display())]
    Foreign { path: PathBuf },
    /// A newer version of this program made the store.
    #[error("measurement store {path} has layout {found}, this version knows up to {SCHEMA}; update, or choose another path with {ENV_PATH}", path = .path.display())]
    Newer { path: PathBuf, found: i64 },
    /// An attempt to write to a frozen store.
    #[error("measurement store {path} is frozen for this run; nothing is written to it", path = .path.display())]
    Frozen { path: PathBuf },
    /// A frozen store must exist.
    #[error("there is no measurement store {path} to run frozen with; run once without freezing it first", path = .path.display())]
    Missing { path: PathBuf },
    /// There is no home directory to keep the store in.
    #[error("no place for the measurement store: neither {ENV_PATH} nor XDG_DATA_HOME nor HOME is set; set one")]
    NoPlace,
    /// A directory cannot be created, or an exchange file cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// A line of an exchange file is not a measurement.
    #[error("line {line}: {cause}; expected a measurement as `regraft cost export` writes it")]
    Line { line: usize, cause: String },
}

/// What a measurement belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The machine, as [`MachineKey`](crate::MachineKey) displays it.
    pub machine: String,
    /// Runtime and version, such as `onnxruntime 1.31.1`.
    pub runtime: String,
    /// Threads within one operator.
    pub threads: u32,
    /// What was measured.
    pub signature: String,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// What it belongs to.
    #[serde(flatten)]
    pub key: Key,
    /// Median, ns.
    pub median_ns: u64,
    /// Distance between the quartiles, ns.
    pub spread_ns: u64,
    /// Number of samples.
    pub samples: u32,
    /// How it was measured, human-readable.
    #[serde(default)]
    pub context: String,
    /// When, in seconds since 1970; 0 is replaced by the current time on storing.
    #[serde(default)]
    pub updated_at: i64,
}

/// Selects measurements; every part that is given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Exactly this machine.
    pub machine: Option<String>,
    /// Exactly this runtime and version.
    pub runtime: Option<String>,
    /// Exactly this number of threads.
    pub threads: Option<u32>,
    /// Signatures that start with this.
    pub signature_prefix: Option<String>,
}

/// Default path of the store: `REGRAFT_COST_STORE`, else `regraft/costs.sqlite` in the user's data
/// directory.
pub fn default_store_path() -> Result<PathBuf, StoreError> {
    let env = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(path) = env(ENV_PATH) {
        return Ok(path);
    }
    let data = env("XDG_DATA_HOME").filter(|p| p.is_absolute());
    let data = if cfg!(windows) { data.or_else(|| env("LOCALAPPDATA")) } else { data };
    let data = data.or_else(|| Some(env("HOME")?.join(".local/share"))).ok_or(StoreError::NoPlace)?;
    Ok(data.join("regraft").join("costs.sqlite"))
}

/// The measurement database.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    frozen: bool,
}

impl Store {
    /// Opens the store at `path`, creating it and its directory if needed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(dir).map_err(|source| StoreError::Io { path: dir.to_path_buf(), source })?;
        }
        let started = std::time::Instant::now();
        loop {
            // Two processes that both create the file can collide in the switch to write-ahead
            // mode, where SQLite gives up at once.
            match Self::try_open(path) {
                Err(StoreError::Database { source, .. }) if is_busy(&source) && started.elapsed() < BUSY => {
                    std::thread::sleep(RETRY);
                }
                result => return result,
            }
        }
    }

    fn try_open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path).map_err(at(path))?;
        let mut store = Self { connection, path: path.to_path_buf(), frozen: false };
        store.connection.busy_timeout(BUSY).map_err(at(path))?;
        let found = check_owner(&store.connection, path)?;
        let mode: String = store.connection.query_row("PRAGMA journal_mode = WAL", [], |r| r.get(0)).map_err(at(path))?;
        // Some file systems do not support it; the default mode is as safe and only slower.
        let _ = mode;
        store.connection.pragma_update(None, "synchronous", "NORMAL").map_err(at(path))?;
        if found == 0 {
            store.transaction(|t| {
                t.execute(CREATE, [])?;
                t.pragma_update(None, "application_id", APPLICATION)?;
                t.pragma_update(None, "user_version", SCHEMA)
            })?;
        }
        Ok(store)
    }

    /// A store in memory, gone when dropped.
    pub fn in_memory() -> Result<Self, StoreError> {
        let path = PathBuf::from(":memory:");
        let connection = Connection::open_in_memory().map_err(at(&path))?;
        connection.execute(CREATE, []).map_err(at(&path))?;
        Ok(Self { connection, path, frozen: false })
    }

    /// A snapshot of the store at `path` that is never written and that no other process changes:
    /// for runs that must repeat exactly.
    pub fn open_frozen(path: &Path) -> Result<Self, StoreError> {
        if !path.is_file() {
            return Err(StoreError::Missing { path: path.to_path_buf() });
        }
        let mut source = Self { connection: open_read_only(path)?, path: path.to_path_buf(), frozen: true };
        if check_owner(&source.connection, path)? == 0 {
            return Err(StoreError::Foreign { path: path.to_path_buf() });
        }
        let mut copy = Self::in_memory()?;
        copy.path = std::mem::take(&mut source.path);
        let all = source.list(&Filter::default()).map_err(|e| e.with_path(path))?;
        copy.put(&all)?;
        copy.put_proofs(&source.proofs().map_err(|e| e.with_path(path))?)?;
        copy.frozen = true;
        Ok(copy)
    }

    /// Whether this is a frozen snapshot.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The measurement for a key.
    pub fn get(&self, key: &Key) -> Result<Option<Measurement>, StoreError> {
        self.get_many(std::slice::from_ref(key)).map(|mut found| found.pop().flatten())
    }

    /// The measurements for many keys, in the same order.
    pub fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Measurement>>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM measurement WHERE machine = ?1 AND runtime = ?2 AND threads = ?3 AND signature = ?4");
        let mut statement = self.connection.prepare_cached(&sql).map_err(at(&self.path))?;
        keys.iter()
            .map(|k| statement.query_row(params![k.machine, k.runtime, k.threads, k.signature], read).optional())
            .collect::<Result<_, _>>()
            .map_err(at(&self.path))
    }

    /// Stores measurements, all or none; those with the same key are replaced.
    pub fn put(&mut self, measurements: &[Measurement]) -> Result<(), StoreError> {
        self.write(measurements, "")
    }

    /// All measurements that match, ordered by key.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Measurement>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM measurement {WHERE} ORDER BY machine, runtime, threads, signature");
        let mut statement = self.connection.prepare_cached(&sql).map_err(at(&self.path))?;
        let (machine, runtime, threads, prefix) = filter.parts();
        let rows = statement.query_map(params![machine, runtime, threads, prefix], read).map_err(at(&self.path))?;
        rows.collect::<Result<_, _>>().map_err(at(&self.path))
    }

    /// Removes all measurements that match; returns how many there were.
    pub fn clear(&mut self, filter: &Filter) -> Result<usize, StoreError> {
        let (machine, runtime, threads, prefix) = filter.parts();
        let sql = format!("DELETE FROM measurement {WHERE}");
        self.transaction(|t| t.execute(&sql, params![machine, runtime, threads, prefix]))
    }

    /// Writes all measurements that match as JSON lines, ordered by key; returns how many.
    pub fn export(&self, filter: &Filter, out: &mut dyn std::io::Write) -> Result<usize, StoreError> {
        let io = |source| StoreError::Io { path: PathBuf::from("export"), source };
        let all = self.list(filter)?;
        for measurement in &all {
            let line = serde_json::to_string(measurement).map_err(|e| io(e.into()))?;
            writeln!(out, "{line}").map_err(io)?;
        }
        Ok(all.len())
    }

    /// Reads JSON lines as [`export`](Self::export) writes them and stores them, all or none; if
    /// both have a key, the newer measurement wins. Returns how many were read.
    pub fn import(&mut self, input: &mut dyn std::io::BufRead) -> Result<usize, StoreError> {
        let mut all: Vec<Measurement> = Vec::new();
        for (number, line) in std::io::BufRead::lines(input).enumerate() {
            let line = line.map_err(|source| StoreError::Io { path: PathBuf::from("import"), source })?;
            if line.trim().is_empty() {
                continue;
            }
            let measurement = serde_json::from_str(&line).map_err(|e| StoreError::Line { line: number + 1, cause: e.to_string() })?;
            all.push(measurement);
        }
        self.write(&all, "WHERE excluded.updated_at >= measurement.updated_at")?;
        Ok(all.len())
    }

    /// Checks the file's structure; `None` if it is sound, otherwise what is wrong.
    pub fn check(&self) -> Result<Option<String>, StoreError> {
        let verdict: String = self.connection.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0)).map_err(at(&self.path))?;
        Ok((verdict != "ok").then_some(verdict))
    }

    fn write(&mut self, measurements: &[Measurement], condition: &str) -> Result<(), StoreError> {
        let sql = format!(
            "INSERT INTO measurement ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET median_ns = excluded.median_ns, spread_ns = excluded.spread_ns,
             samples = excluded.samples, context = excluded.context, updated_at = excluded.updated_at {condition}"
        );
        let now = now();
        self.transaction(|t| {
            let mut statement = t.prepare_cached(&sql)?;
            for m in measurements {
                let k = &m.key;
                let integer = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
                let updated_at = if m.updated_at == 0 { now } else { m.updated_at };
                let (median, spread) = (integer(m.median_ns), integer(m.spread_ns));
                let values = params![k.machine, k.runtime, k.threads, k.signature, median, spread, m.samples, m.context, updated_at];
                statement.execute(values)?;
            }
            Ok(())
        })
    }

    fn transaction<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        if self.frozen {
            return Err(StoreError::Frozen { path: self.path.clone() });
        }
        let path = &self.path;
        // Takes the write lock first: SQLite then waits for others instead of failing halfway.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(at(path))?;
        let result = work(&transaction).map_err(at(path))?;
        transaction.commit().map_err(at(path))?;
        Ok(result)
    }
}

const WHERE: &str = "WHERE (?1 IS NULL OR machine = ?1) AND (?2 IS NULL OR runtime = ?2) AND (?3 IS NULL OR threads = ?3)
    AND (?4 IS NULL OR substr(signature, 1, length(?4)) = ?4)";

impl Filter {
    fn parts(&self) -> (Option<&str>, Option<&str>, Option<u32>, Option<&str>) {
        (self.machine.as_deref(), self.runtime.as_deref(), self.threads, self.signature_prefix.as_deref())
    }
}

impl StoreError {
    fn with_path(self, path: &Path) -> Self {
        match self {
            Self::Database { source, .. } => Self::Database { path: path.to_path_buf(), source },
            other => other,
        }
    }
}

/// Opens without ever writing: if no write-ahead log is pending, not even the files beside the
/// database are created.
fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log_waits = std::fs::metadata(&log).is_ok_and(|m| m.len() > 0);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let immutable = || {
        let absolute = std::path::absolute(path).map_err(|source| StoreError::Io { path: path.to_path_buf(), source })?;
        let mut uri = String::from("file:");
        for byte in absolute.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(*byte)),
                b'\\' if cfg!(windows) => uri.push('/'),
                b':' if cfg!(windows) => uri.push(':'),
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri.push_str("?immutable=1");
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI).map_err(at(path))
    };
    let connection = if log_waits { Connection::open_with_flags(path, flags).map_err(at(path))? } else { immutable()? };
    connection.busy_timeout(BUSY).map_err(at(path))?;
    Ok(connection)
}

/// The layout version, 0 for an empty database; an error for a foreign or newer one.
fn check_owner(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    // A consistent view of the file: another process may be creating the store right now.
    let view = connection.unchecked_transaction().map_err(at(path))?;
    let number = |sql: &str| view.query_row(sql, [], |r| r.get::<_, i64>(0)).map_err(at(path));
    let tables = number("SELECT count(*) FROM sqlite_master")?;
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    if application == APPLICATION {
        return if version > SCHEMA { Err(StoreError::Newer { path: path.to_path_buf(), found: version }) } else { Ok(version) };
    }
    if tables == 0 { Ok(0) } else { Err(StoreError::Foreign { path: path.to_path_buf() }) }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Measurement> {
    let key = Key { machine: row.get(0)?, runtime: row.get(1)?, threads: row.get(2)?, signature: row.get(3)? };
    let ns = |column| row.get::<_, i64>(column).map(|ns| u64::try_from(ns).unwrap_or(0));
    Ok(Measurement { key, median_ns: ns(4)?, spread_ns: ns(5)?, samples: row.get(6)?, context: row.get(7)?, updated_at: row.get(8)? })
}

fn at(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
    move |source| StoreError::Database { path: path.to_path_buf(), source }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}
