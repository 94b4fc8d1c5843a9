//! Reading input values from files: NumPy's `.npy`, and ONNX's `TensorProto` (`.pb`).

use std::path::{Path, PathBuf};

use prost::Message;
use regraft_onnx::proto::TensorProto;

use crate::{DType, HostTensor, TensorError};

/// Why a file holds no usable tensor. Always the file's fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum DataError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file's name indicates neither kind.
    #[error("{path}: unknown kind of file; expected .npy, .npz (NumPy) or .pb (an ONNX TensorProto)", path = .path.display())]
    Kind { path: PathBuf },
    /// The file's content is not of the kind its name indicates.
    #[error("{place}: {cause}")]
    Malformed { place: String, cause: String },
}

/// A tensor from a file, with the name that the file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTensor {
    /// Name, if the file has one; `.npy` files never do.
    pub name: Option<String>,
    /// The values.
    pub tensor: HostTensor,
}

/// Reads a `.npy` or `.pb` file.
pub fn read_tensor_file(path: &Path) -> Result<NamedTensor, DataError> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let parse: fn(&[u8]) -> Result<NamedTensor, String> = match extension.as_deref() {
        Some("npy") => |bytes| read_npy(bytes).map(|tensor| NamedTensor { name: None, tensor }),
        Some("pb") => read_tensor_proto,
        _ => return Err(DataError::Kind { path: path.to_path_buf() }),
    };
    let bytes = std::fs::read(path).map_err(|source| DataError::Io { path: path.to_path_buf(), source })?;
    parse(&bytes).map_err(|cause| DataError::Malformed { place: path.display().to_string(), cause })
}

/// Parses the content of a `.npy` file: versions 1 to 3, C order, little-endian numbers or
/// booleans.
pub fn read_npy(bytes: &[u8]) -> Result<HostTensor, String> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("not a .npy file (wrong first bytes)")?;
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or("the header is cut off")?;
    let (length, rest) = match major {
        1 => {
            let (n, rest) = rest.split_first_chunk::<2>().ok_or("the header is cut off")?;
            (usize::from(u16::from_le_bytes(*n)), rest)
        }
        2 | 3 => {
            let (n, rest) = rest.split_first_chunk::<4>().ok_or("the header is cut off")?;
            (u32::from_le_bytes(*n) as usize, rest)
        }
        _ => return Err(format!("version {major} of the .npy format is not supported; versions 1 to 3 are")),
    };
    let (header, data) = rest.split_at_checked(length).ok_or("the header is cut off")?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
    let field = |name: &str| -> Result<&str, String> {
        let key = [format!("'{name}'"), format!("\"{name}\"")];
        let at = key.iter().find_map(|k| Some(header.find(k)? + k.len())).ok_or_else(|| format!("the header lacks `{name}`"))?;
        Ok(header[at..].trim_start().trim_start_matches(':').trim_start())
    };
    let order = field("fortran_order")?;
    if !order.starts_with("False") {
        return Err("values are in Fortran order; save them with numpy.ascontiguousarray".to_owned());
    }
    let dtype = npy_dtype(field("descr")?)?;
    let shape = npy_shape(field("shape")?)?;
    let need = HostTensor::zeros(dtype, Vec::new())
        .map(|one| shape.iter().try_fold(one.bytes().len(), |n, d| n.checked_mul(*d)))
        .map_err(|e| e.to_string())?
        .ok_or("the shape is too large for memory")?;
    if data.len() < need {
        return Err(format!("the values are cut off: shape {shape:?} needs {need} bytes, the file has {}", data.len()));
    }
    from_little_endian(dtype, shape, &data[..need]).map_err(|e| e.to_string())
}

fn npy_dtype(descr: &str) -> Result<DType, String> {
    let quote = descr.chars().next().filter(|c| *c == '\'' || *c == '"').ok_or("structured types are not supported")?;
    let descr = descr[1..].split(quote).next().unwrap_or_default();
    let (order, kind) = match descr.chars().next() {
        Some('<' | '|' | '=') => ('<', &descr[1..]),
        Some('>') => ('>', &descr[1..]),
        _ => ('<', descr),
    };
    let dtype = match kind {
        "f4" => DType::F32,
        "f8" => DType::F64,
        "f2" => DType::F16,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "b1" => DType::Bool,
        _ => return Err(format!("element type `{descr}` is not supported; use float, int, uint or bool")),
    };
    if order == '>' && dtype.size() != Some(1) {
        return Err(format!("values are big-endian (`{descr}`); save them with .astype('<{kind}')"));
    }
    Ok(dtype)
}

fn npy_shape(text: &str) -> Result<Vec<usize>, String> {
    let bad = || "the shape in the header is not a tuple of sizes".to_owned();
    let inner = text.strip_prefix('(').and_then(|t| t.split(')').next()).ok_or_else(bad)?;
    inner
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.trim_end_matches('L').parse().map_err(|_| bad()))
        .collect()
}

/// Parses a serialized `TensorProto`. External data and text are refused.
pub fn read_tensor_proto(bytes: &[u8]) -> Result<NamedTensor, String> {
    let proto = TensorProto::decode(bytes).map_err(|e| format!("not an ONNX TensorProto ({e})"))?;
    let dtype = DType::from_onnx(proto.data_type());
    if proto.data_type() == 0 {
        return Err("not an ONNX TensorProto (it has no element type)".to_owned());
    }
    if proto.data_location() as i32 == 1 || !proto.external_data.is_empty() {
        return Err("the values are in another file (external data); store them in the tensor itself".to_owned());
    }
    let shape: Vec<usize> =
        proto.dims.iter().map(|d| usize::try_from(*d).map_err(|_| format!("negative size {d}"))).collect::<Result<_, _>>()?;
    let tensor = match &proto.raw_data {
        Some(raw) => from_little_endian(dtype, shape, raw),
        None => from_typed_fields(&proto, dtype, shape),
    };
    let name = Some(proto.name().to_owned()).filter(|n| !n.is_empty());
    Ok(NamedTensor { name, tensor: tensor.map_err(|e| e.to_string())? })
}

/// The fields other than `raw_data`: narrow types are widened there, one element per entry.
fn from_typed_fields(proto: &TensorProto, dtype: DType, shape: Vec<usize>) -> Result<HostTensor, TensorError> {
    let narrow = &proto.int32_data;
    let bytes: Vec<u8> = match dtype {
        DType::F32 => proto.float_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        DType::F64 => proto.double_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        DType::I64 => proto.int64_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        DType::U64 => proto.uint64_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        DType::U32 => proto.uint64_data.iter().flat_map(|v| (*v as u32).to_ne_bytes()).collect(),
        DType::I32 => narrow.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        DType::I16 | DType::U16 | DType::F16 | DType::BF16 => narrow.iter().flat_map(|v| (*v as u16).to_ne_bytes()).collect(),
        DType::I8 | DType::U8 | DType::Bool => narrow.iter().map(|v| *v as u8).collect(),
        DType::String | DType::Other => return Err(TensorError::Unsupported { dtype }),
    };
    HostTensor::from_bytes(dtype, shape, &bytes)
}

fn from_little_endian(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Result<HostTensor, TensorError> {
    let size = dtype.size().ok_or(TensorError::Unsupported { dtype })?;
    if cfg!(target_endian = "little") || size == 1 {
        return HostTensor::from_bytes(dtype, shape, bytes);
    }
    let swapped: Vec<u8> = bytes.chunks(size).flat_map(|element| element.iter().rev().copied()).collect();
    HostTensor::from_bytes(dtype, shape, &swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        if version == 1 {
            bytes.extend((header.len() as u16).to_le_bytes());
        } else {
            bytes.extend((header.len() as u32).to_le_bytes());
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn npy_of_all_versions() {
        let data: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        for version in 1..=3 {
            let t = read_npy(&npy(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", &data)).unwrap();
            assert_eq!((t.shape(), t.values::<f32>().unwrap()), (&[2, 1][..], &[1.5, -2.0][..]));
        }
        let scalar = read_npy(&npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", &[1])).unwrap();
        assert_eq!((scalar.shape().len(), scalar.bools().unwrap()), (0, vec![true]));
    }

    #[test]
    fn bad_npy_is_a_clean_error() {
        let head = |descr: &str, order: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        let cases = [
            (b"PK\x03\x04".to_vec(), "wrong first bytes"),
            (npy(9, "", &[]), "version 9"),
            (npy(1, "{}", &[]), "lacks"),
            (npy(1, &head("'>f4'", "False", "(1,)"), &[0; 4]), "big-endian"),
            (npy(1, &head("'<f4'", "True", "(1,)"), &[0; 4]), "Fortran"),
            (npy(1, &head("'<U7'", "False", "(1,)"), &[0; 4]), "not supported"),
            (npy(1, &head("[('a', '<f4')]", "False", "(1,)"), &[0; 4]), "structured"),
            (npy(1, &head("'<f4'", "False", "(3,)"), &[0; 4]), "cut off"),
            (npy(1, &head("'<f4'", "False", "(x,)"), &[0; 4]), "tuple"),
            (npy(1, &head("'<f4'", "False", "(99999999999, 99999999999)"), &[0; 4]), "too large"),
        ];
        for (bytes, expected) in cases {
            let error = read_npy(&bytes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let full = npy(1, &head("'<f4'", "False", "(1,)"), &[0; 4]);
        for length in 0..full.len() {
            assert!(read_npy(&full[..length]).is_err());
        }
    }

    #[test]
    fn tensor_proto_raw_and_typed() {
        let raw = TensorProto {
            dims: vec![2],
            data_type: Some(7),
            raw_data: Some([5i64, -1].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()),
            name: Some("x".to_owned()),
            ..TensorProto::default()
        };
        let read = read_tensor_proto(&raw.encode_to_vec()).unwrap();
        assert_eq!((read.name.as_deref(), read.tensor.values::<i64>().unwrap()), (Some("x"), &[5, -1][..]));
        let typed = TensorProto { dims: vec![3], data_type: Some(3), int32_data: vec![-1, 2, 3], ..TensorProto::default() };
        assert_eq!(read_tensor_proto(&typed.encode_to_vec()).unwrap().tensor.values::<i8>().unwrap(), [-1, 2, 3]);
        let text = TensorProto { dims: vec![1], data_type: Some(8), ..TensorProto::default() };
        assert!(read_tensor_proto(&text.encode_to_vec()).unwrap_err().contains("not supported"));
        assert!(read_tensor_proto(&[]).is_err());
        assert!(read_tensor_file(Path::new("x.txt")).unwrap_err().to_string().contains(".npy"));
    }
}
