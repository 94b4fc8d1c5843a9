//! The measurement store: contents, exchange, and two processes, one of which is killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use regraft_runtime::{Filter, Key, Measurement, Store, StoreError};

fn key(signature: &str) -> Key {
    Key { machine: "m".to_owned(), runtime: "r 1".to_owned(), threads: 1, signature: signature.to_owned() }
}

fn measurement(signature: &str, median_ns: u64, updated_at: i64) -> Measurement {
    Measurement { key: key(signature), median_ns, spread_ns: 5, samples: 30, context: "test".to_owned(), updated_at }
}

#[test]
fn put_get_list_clear() {
    let mut store = Store::in_memory().unwrap();
    store.put(&[measurement("conv b", 2, 10), measurement("conv a", 1, 0), measurement("relu", 3, 10)]).unwrap();
    store.put(&[measurement("conv b", 20, 5)]).unwrap();
    let found = store.get_many(&[key("conv b"), key("none"), key("conv a")]).unwrap();
    assert_eq!(found[0].as_ref().unwrap().median_ns, 20);
    assert!(found[1].is_none() && found[2].as_ref().unwrap().updated_at > 1_600_000_000);
    let prefix = Filter { signature_prefix: Some("conv".to_owned()), threads: Some(1), ..Filter::default() };
    let listed = store.list(&prefix).unwrap();
    assert_eq!(listed.iter().map(|m| m.key.signature.as_str()).collect::<Vec<_>>(), ["conv a", "conv b"]);
    assert_eq!(store.clear(&prefix).unwrap(), 2);
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 1);
    assert_eq!(store.get(&key("relu")).unwrap().unwrap().median_ns, 3);
}

#[test]
fn export_and_import() {
    let mut store = Store::in_memory().unwrap();
    store.put(&[measurement("a", 1, 100), measurement("b", 2, 100)]).unwrap();
    let mut text = Vec::new();
    assert_eq!(store.export(&Filter::default(), &mut text).unwrap(), 2);
    let mut other = Store::in_memory().unwrap();
    other.put(&[measurement("a", 9, 200), measurement("b", 9, 50)]).unwrap();
    assert_eq!(other.import(&mut &text[..]).unwrap(), 2);
    // The newer one wins.
    assert_eq!(other.get(&key("a")).unwrap().unwrap().median_ns, 9);
    assert_eq!(other.get(&key("b")).unwrap().unwrap().median_ns, 2);
    let bad = [&text[..], b"{\"machine\":1}\n"].concat();
    let error = other.import(&mut &bad[..]).unwrap_err();
    assert!(matches!(error, StoreError::Line { line: 3, .. }), "{error}");
}

#[test]
fn frozen_copy_is_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub dir/costs?.sqlite");
    assert!(matches!(Store::open_frozen(&path), Err(StoreError::Missing { .. })));
    let mut store = Store::open(&path).unwrap();
    store.put(&[measurement("a", 1, 1)]).unwrap();
    let mut while_open = Store::open_frozen(&path).unwrap();
    store.put(&[measurement("a", 2, 2)]).unwrap();
    assert_eq!(while_open.get(&key("a")).unwrap().unwrap().median_ns, 1);
    assert!(matches!(while_open.put(&[measurement("z", 1, 1)]), Err(StoreError::Frozen { .. })));
    assert!(matches!(while_open.clear(&Filter::default()), Err(StoreError::Frozen { .. })));
    drop(store);
    let before = std::fs::read(&path).unwrap();
    let frozen = Store::open_frozen(&path).unwrap();
    assert!(frozen.is_frozen() && frozen.path() == path);
    assert_eq!(frozen.get(&key("a")).unwrap().unwrap().median_ns, 2);
    drop(frozen);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn foreign_newer_and_damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Foreign { .. })));
    assert!(matches!(Store::open_frozen(&path), Err(StoreError::Foreign { .. })));
    let newer = dir.path().join("newer.sqlite");
    drop(Store::open(&newer).unwrap());
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(&newer), Err(StoreError::Newer { found: 99, .. })));
    let damaged = dir.path().join("damaged.sqlite");
    std::fs::write(&damaged, b"this is no database at all, but long enough to have a header of its own").unwrap();
    assert!(Store::open(&damaged).unwrap_err().to_string().contains("damaged.sqlite"));
}

const CHILD: &str = "REGRAFT_TEST_STORE_WRITER";
/// Measurements per transaction of a child.
const BATCH: usize = 20;

/// Not a test by itself: the other process of the test below. Writes whole batches until its parent
/// stops it.
#[test]
fn writer_process() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let who = std::process::id();
    let mut store = Store::open(Path::new(&path)).unwrap();
    // This must not keep running if the parent dies.
    let started = Instant::now();
    for round in 1.. {
        let batch: Vec<Measurement> = (0..BATCH)
            // Half of the keys are shared with the other process.
            .map(|i| measurement(&if i % 2 == 0 { format!("shared {i}") } else { format!("{who} {i}") }, round, 1))
            .collect();
        store.put(&batch).unwrap();
        if started.elapsed() > Duration::from_secs(60) {
            break;
        }
    }
}

fn spawn_writer(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer_process"])
        .env(CHILD, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn survives_two_writers_and_a_hard_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("costs.sqlite");
    for attempt in 0..3 {
        let mut writers = [spawn_writer(&path), spawn_writer(&path)];
        let ids = [writers[0].id(), writers[1].id()];
        // Until both have written.
        let started = Instant::now();
        let store = Store::open(&path).unwrap();
        let filter = |id: u32| Filter { signature_prefix: Some(format!("{id} ")), ..Filter::default() };
        while ids.iter().any(|id| store.list(&filter(*id)).unwrap().is_empty()) {
            assert!(started.elapsed() < Duration::from_secs(40), "the writers never wrote");
            for writer in &mut writers {
                assert!(writer.try_wait().unwrap().is_none(), "a writer failed");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(7 * attempt));
        writers[0].kill().unwrap();
        writers[0].wait().unwrap();
        // The other keeps writing.
        let round = |id: u32| store.list(&filter(id)).unwrap()[0].median_ns;
        let at = round(ids[1]);
        while round(ids[1]) == at {
            assert!(started.elapsed() < Duration::from_secs(50), "the other writer is stuck");
            assert!(writers[1].try_wait().unwrap().is_none(), "the other writer failed");
            std::thread::sleep(Duration::from_millis(2));
        }
        writers[1].kill().unwrap();
        writers[1].wait().unwrap();
        drop(store);

        let store = Store::open(&path).unwrap();
        assert_eq!(store.check().unwrap(), None);
        for id in ids {
            // Transactions are whole: all of a batch's own keys hold the same round.
            let own = store.list(&filter(id)).unwrap();
            assert_eq!(own.len(), BATCH / 2);
            assert!(own.iter().all(|m| m.median_ns == own[0].median_ns));
        }
    }
}
