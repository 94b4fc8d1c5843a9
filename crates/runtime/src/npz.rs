//! Reading NumPy's `.npz` archives: one `.npy` file per array, stored or deflated.

use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use crate::{DataError, NamedTensor, read_npy};

/// Reads all arrays of an `.npz` file, in file order, each under its saved name.
pub fn read_npz(path: &Path) -> Result<Vec<NamedTensor>, DataError> {
    let file = std::fs::File::open(path).map_err(|source| DataError::Io { path: path.to_path_buf(), source })?;
    let malformed = |cause: String| DataError::Malformed { place: path.display().to_string(), cause };
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| malformed(format!("not an .npz archive ({e})")))?;
    let mut tensors = Vec::with_capacity(archive.len());
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).map_err(|e| malformed(e.to_string()))?;
        let name = entry.name().map_err(|e| malformed(e.to_string()))?.into_owned();
        let within = |cause: String| malformed(format!("array `{name}`: {cause}"));
        let array = name.strip_suffix(".npy").ok_or_else(|| within("not a .npy file".to_string()))?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|e| within(e.to_string()))?;
        let tensor = read_npy(&bytes).map_err(within)?;
        tensors.push(NamedTensor { name: Some(array.to_string()), tensor });
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    fn archive(entries: &[(&str, &[u8])], method: CompressionMethod) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut zip = ZipWriter::new(file.reopen().unwrap());
        for (name, bytes) in entries {
            zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
        file
    }

    fn array(values: &[f32]) -> Vec<u8> {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}\n", values.len());
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        bytes
    }

    #[test]
    fn arrays_come_with_their_names() {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let file = archive(&[("x.npy", &array(&[1.0, 2.0])), ("a/b.npy", &array(&[3.0]))], method);
            let read = read_npz(file.path()).unwrap();
            let names: Vec<_> = read.iter().filter_map(|t| t.name.as_deref()).collect();
            assert_eq!(names, ["x", "a/b"]);
            assert_eq!(read[0].tensor.values::<f32>().unwrap(), [1.0, 2.0]);
        }
    }

    #[test]
    fn damage_is_told() {
        let good = array(&[1.0]);
        for (entries, cause) in
            [(vec![("x.txt", good.as_slice())], "`x.txt`: not a .npy file"), (vec![("x.npy", &good[..20])], "`x.npy`: ")]
        {
            let error = read_npz(archive(&entries, CompressionMethod::Deflated).path()).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
        let cut = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(cut.path(), b"PK\x03\x04 and no more").unwrap();
        assert!(read_npz(cut.path()).unwrap_err().to_string().contains("not an .npz archive"));
    }
}
