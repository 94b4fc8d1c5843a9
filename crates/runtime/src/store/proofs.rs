//! Proofs remembered by the store, under a digest of what was proved and of the program that proved
//! it.
//!
//! Anyone who can write the file can write proofs into it: they save time, and are evidence to
//! nobody else.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError, at, now};

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS proof (digest BLOB NOT NULL PRIMARY KEY, note TEXT NOT NULL, made_at INTEGER NOT NULL) WITHOUT ROWID";

/// A digest of what was proved, 32 bytes.
pub type ProofKey = [u8; 32];

impl Store {
    /// The note of this proof, if it was made before.
    pub fn proof(&self, key: &ProofKey) -> Result<Option<String>, StoreError> {
        if !self.has_proofs()? {
            return Ok(None);
        }
        let mut statement = self.connection.prepare_cached("SELECT note FROM proof WHERE digest = ?1").map_err(at(&self.path))?;
        statement.query_row(params![key.as_slice()], |row| row.get(0)).optional().map_err(at(&self.path))
    }

    /// Remembers proofs with their notes, all or none; those with the same key are replaced.
    pub fn put_proofs(&mut self, proofs: &[(ProofKey, String)]) -> Result<(), StoreError> {
        let made_at = now();
        self.transaction(|t| {
            t.execute(CREATE, [])?;
            let mut statement = t.prepare_cached("INSERT OR REPLACE INTO proof (digest, note, made_at) VALUES (?1, ?2, ?3)")?;
            for (key, note) in proofs {
                statement.execute(params![key.as_slice(), note, made_at])?;
            }
            Ok(())
        })
    }

    /// All proofs, by key.
    pub(super) fn proofs(&self) -> Result<Vec<(ProofKey, String)>, StoreError> {
        if !self.has_proofs()? {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare("SELECT digest, note FROM proof ORDER BY digest").map_err(at(&self.path))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(at(&self.path))?;
        rows.collect::<Result<_, _>>().map_err(at(&self.path))
    }

    /// False for stores of versions that had none.
    fn has_proofs(&self) -> Result<bool, StoreError> {
        let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'proof'";
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0)).map_err(at(&self.path))?;
        Ok(count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_remembered_and_go_along_with_a_frozen_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("costs.sqlite");
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.proof(&[7; 32]).unwrap(), None);
        store.put_proofs(&[([7; 32], "note".into()), ([8; 32], String::new())]).unwrap();
        assert_eq!(store.proof(&[7; 32]).unwrap().as_deref(), Some("note"));
        assert_eq!(store.proof(&[9; 32]).unwrap(), None);
        drop(store);
        let mut frozen = Store::open_frozen(&path).unwrap();
        assert_eq!(frozen.proof(&[8; 32]).unwrap().as_deref(), Some(""));
        assert!(frozen.put_proofs(&[([9; 32], String::new())]).is_err());
    }
}
