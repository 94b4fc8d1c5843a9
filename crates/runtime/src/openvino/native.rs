//! OpenVINO's C interface with owned pointers, and status codes as errors.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};

use openvino_sys as sys;

use crate::DType;

/// What a call failed with: the library's own message.
pub type Result<T> = std::result::Result<T, String>;

/// A status as a result, with the message of the last failure on this thread.
fn check(status: sys::ov_status_e) -> Result<()> {
    if status == sys::ov_status_e::OK {
        return Ok(());
    }
    // SAFETY: the library returns null or a string that lives until it is freed, below.
    let detail = unsafe { owned_text(sys::ov_get_last_err_msg()) };
    // SAFETY: the library returns a static string for every status.
    let kind = unsafe { CStr::from_ptr(sys::ov_get_error_info(status)) }.to_string_lossy().into_owned();
    Err(if detail.is_empty() { kind } else { detail })
}

/// The text that the library made, which is freed.
///
/// # Safety
///
/// `text` is null or a string that the library made and nothing else refers to.
unsafe fn owned_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the string.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: as above, and it is not used again.
    unsafe { sys::ov_free(text) };
    copy
}

/// What a call stores through its last argument.
fn made<T>(call: impl FnOnce(*mut *mut T) -> sys::ov_status_e) -> Result<NonNull<T>> {
    let mut made = ptr::null_mut();
    check(call(&raw mut made))?;
    NonNull::new(made).ok_or_else(|| "the library returned nothing".to_owned())
}

fn c_path(path: &Path) -> Result<CString> {
    let text = path.to_str().ok_or_else(|| format!("{}: not valid UTF-8", path.display()))?;
    CString::new(text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Declares an owner of a pointer and how it is freed.
macro_rules! owner {
    ($(#[$doc:meta])* $name:ident($of:ident), $free:ident) => {
        $(#[$doc])*
        pub struct $name(NonNull<sys::$of>);

        // SAFETY: the library's objects are not tied to a thread.
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the pointer is owned, and not used again.
                unsafe { sys::$free(self.0.as_ptr()) };
            }
        }
    };
}

owner!(
    /// The library's plugins.
    Core(ov_core_t), ov_core_free
);
owner!(
    /// A model, as it was read.
    Network(ov_model_t), ov_model_free
);
owner!(
    /// A model, ready to run.
    Compiled(ov_compiled_model_t), ov_compiled_model_free
);
owner!(
    /// The inputs, outputs and scratch memory of a run.
    Request(ov_infer_request_t), ov_infer_request_free
);
owner!(
    /// A tensor in the library's memory.
    Tensor(ov_tensor_t), ov_tensor_free
);
owner!(
    /// An input or output of a compiled model.
    Port(ov_output_const_port_t), ov_output_const_port_free
);

// SAFETY: the library guards its plugins against concurrent use.
unsafe impl Sync for Core {}

/// One entry of the times that a request has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name of the node.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// The kernel that was chosen for it; `undef` for what was fused into the entry before it.
    pub kernel: String,
    /// Mean time over the runs so far, rounded down, µs.
    pub micros: u64,
}

/// The version of the loaded library, such as `2026.4.1`.
pub fn version() -> Result<String> {
    let mut version = sys::ov_version { buildNumber: ptr::null(), description: ptr::null() };
    // SAFETY: `version` is a valid place to write to.
    check(unsafe { sys::ov_get_openvino_version(&raw mut version) })?;
    // SAFETY: the call succeeded, and the string lives until it is freed.
    let build = unsafe { CStr::from_ptr(version.buildNumber) }.to_string_lossy().into_owned();
    // SAFETY: as above, and it is not used again.
    unsafe { sys::ov_version_free(&raw mut version) };
    Ok(build.split('-').next().unwrap_or(&build).to_owned())
}

impl Core {
    /// Starts the library.
    pub fn new() -> Result<Core> {
        // SAFETY: the pointer that is passed is a valid place to write to.
        made(|core| unsafe { sys::ov_core_create(core) }).map(Core)
    }

    /// Reads a model file.
    pub fn read(&self, path: &Path) -> Result<Network> {
        let path = c_path(path)?;
        // SAFETY: the path is a string, and no second file is named.
        made(|model| unsafe { sys::ov_core_read_model(self.0.as_ptr(), path.as_ptr(), ptr::null(), model) }).map(Network)
    }

    /// Reads a model without external data.
    pub fn read_bytes(&self, bytes: &[u8]) -> Result<Network> {
        let (start, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the bytes live longer than the call, and no weights are given apart.
        made(|model| unsafe { sys::ov_core_read_model_from_memory_buffer(self.0.as_ptr(), start, length, ptr::null(), model) }).map(Network)
    }

    /// Compiles a model for a device under these properties. What it stores and loads, and what
    /// [`Compiled::export`] writes, passes through `codec`.
    pub fn compile(&self, what: Uncompiled<'_>, device: &str, properties: &[(&str, String)], codec: Codec) -> Result<Compiled> {
        const CODEC: &CStr = c"CACHE_ENCRYPTION_CALLBACKS";
        let text = |text: &str| CString::new(text).map_err(|e| format!("{text}: {e}"));
        let device = text(device)?;
        let owned = properties.iter().map(|(key, value)| Ok((text(key)?, text(value)?))).collect::<Result<Vec<_>>>()?;
        let property = |(key, value): &(CString, CString)| sys::ov_property_t { key: key.as_ptr(), value: value.as_ptr().cast() };
        let mut list: Vec<sys::ov_property_t> = owned.iter().map(property).collect();
        let callbacks = sys::ov_encryption_callbacks { encrypt_func: Some(codec), decrypt_func: Some(codec) };
        list.push(sys::ov_property_t { key: CODEC.as_ptr(), value: ptr::from_ref(&callbacks).cast::<c_void>() });
        let (core, device) = (self.0.as_ptr(), device.as_ptr());
        let compiled = match what {
            Uncompiled::Network(model) => {
                let model = model.0.as_ptr();
                // SAFETY: all pointers live longer than the call, which copies what it needs of
                // them.
                made(|compiled| unsafe { sys::ov_core_compile_model_props(core, model, device, list.len(), list.as_ptr(), compiled) })
            }
            Uncompiled::File(path) => {
                let path = c_path(path)?;
                let path = path.as_ptr();
                // SAFETY: as above.
                made(|compiled| unsafe {
                    sys::ov_core_compile_model_from_file_props(core, path, device, list.len(), list.as_ptr(), compiled)
                })
            }
        };
        compiled.map(Compiled)
    }
}

/// What [`Core::compile`] compiles.
#[derive(Clone, Copy)]
pub enum Uncompiled<'a> {
    /// A model that was read.
    Network(&'a Network),
    /// A file, which is not even read if it was compiled and stored before.
    File(&'a Path),
}

/// Is called twice with bytes to encrypt or to decrypt: first without a place to write to, to say
/// how many it would write.
pub type Codec = unsafe extern "C" fn(*const c_char, usize, *mut c_char, *mut usize);

/// How many inputs or outputs there are, and one of them.
type Size = unsafe fn(*const sys::ov_compiled_model_t, *mut usize) -> sys::ov_status_e;
type ByIndex = unsafe fn(*const sys::ov_compiled_model_t, usize, *mut *mut sys::ov_output_const_port_t) -> sys::ov_status_e;

impl Compiled {
    /// Its inputs, in the model's order.
    pub fn inputs(&self) -> Result<Vec<Port>> {
        self.ports(sys::ov_compiled_model_inputs_size, sys::ov_compiled_model_input_by_index)
    }

    /// Its outputs, in the model's order.
    pub fn outputs(&self) -> Result<Vec<Port>> {
        self.ports(sys::ov_compiled_model_outputs_size, sys::ov_compiled_model_output_by_index)
    }

    fn ports(&self, size: Size, by_index: ByIndex) -> Result<Vec<Port>> {
        let mut count = 0;
        // SAFETY: `count` is a valid place to write to.
        check(unsafe { size(self.0.as_ptr(), &raw mut count) })?;
        // SAFETY: the index is below the count.
        let port = |at| made(|port| unsafe { by_index(self.0.as_ptr(), at, port) }).map(Port);
        (0..count).map(port).collect()
    }

    /// A request of its own.
    pub fn request(&self) -> Result<Request> {
        // SAFETY: the pointer that is passed is a valid place to write to.
        made(|request| unsafe { sys::ov_compiled_model_create_infer_request(self.0.as_ptr(), request) }).map(Request)
    }

    /// Writes the model as it was compiled.
    pub fn export(&self, path: &Path) -> Result<()> {
        let path = c_path(path)?;
        // SAFETY: the path is a string.
        check(unsafe { sys::ov_compiled_model_export_model(self.0.as_ptr(), path.as_ptr()) })
    }
}

impl Port {
    /// One of the names of its tensor.
    pub fn name(&self) -> Result<String> {
        let mut name = ptr::null_mut();
        // SAFETY: `name` is a valid place to write to.
        check(unsafe { sys::ov_port_get_any_name(self.0.as_ptr(), &raw mut name) })?;
        // SAFETY: the call succeeded, and the string is ours.
        Ok(unsafe { owned_text(name) })
    }

    /// Element type.
    pub fn dtype(&self) -> Result<DType> {
        let mut kind = sys::ov_element_type_e::DYNAMIC;
        // SAFETY: `kind` is a valid place to write to.
        check(unsafe { sys::ov_port_get_element_type(self.0.as_ptr(), &raw mut kind) })?;
        Ok(from_element_type(kind))
    }

    /// Sizes, `None` where not fixed; nothing for an unknown rank.
    pub fn sizes(&self) -> Result<Option<Vec<Option<usize>>>> {
        let unknown = sys::ov_dimension { min: 0, max: 0 };
        let mut shape = sys::ov_partial_shape { rank: unknown, dims: ptr::null_mut() };
        // SAFETY: `shape` is a valid place to write to.
        check(unsafe { sys::ov_port_get_partial_shape(self.0.as_ptr(), &raw mut shape) })?;
        let rank = (shape.rank.min == shape.rank.max).then(|| usize::try_from(shape.rank.max).unwrap_or(0));
        let sizes = rank.map(|rank| {
            // SAFETY: the shape holds as many sizes as its rank says; none for a rank of 0.
            let dims = if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(shape.dims, rank) } };
            dims.iter().map(|d| usize::try_from(d.max).ok().filter(|_| d.min == d.max)).collect()
        });
        // SAFETY: the shape is ours, and not used again.
        unsafe { sys::ov_partial_shape_free(&raw mut shape) };
        Ok(sizes)
    }
}

impl Request {
    /// Sets the value of an input.
    pub fn set_input(&mut self, at: usize, tensor: &Tensor) -> Result<()> {
        // SAFETY: the library shares the tensor's memory, which it owns.
        check(unsafe { sys::ov_infer_request_set_input_tensor_by_index(self.0.as_ptr(), at, tensor.0.as_ptr()) })
    }

    /// Runs once, on this thread and those of the library.
    pub fn infer(&mut self) -> Result<()> {
        // SAFETY: the pointer is owned.
        check(unsafe { sys::ov_infer_request_infer(self.0.as_ptr()) })
    }

    /// The value of an output after a run.
    pub fn output(&self, at: usize) -> Result<Tensor> {
        // SAFETY: the pointer that is passed is a valid place to write to.
        made(|tensor| unsafe { sys::ov_infer_request_get_output_tensor_by_index(self.0.as_ptr(), at, tensor) }).map(Tensor)
    }

    /// The nodes that run, in their order, with their times.
    pub fn counters(&self) -> Result<Vec<Counter>> {
        let mut list = sys::ov_profiling_info_list_t { profiling_infos: ptr::null_mut(), size: 0 };
        // SAFETY: `list` is a valid place to write to.
        check(unsafe { sys::ov_infer_request_get_profiling_info(self.0.as_ptr(), &raw mut list) })?;
        // SAFETY: the list holds as many entries as it says.
        let entries = if list.size == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(list.profiling_infos, list.size) } };
        // SAFETY: the strings of an entry live as long as the list.
        let text = |text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        let counters = entries
            .iter()
            .map(|entry| Counter {
                name: text(entry.node_name),
                kind: text(entry.node_type),
                kernel: text(entry.exec_type),
                micros: u64::try_from(entry.real_time).unwrap_or(0),
            })
            .collect();
        // SAFETY: the list is ours, and not used again.
        unsafe { sys::ov_profiling_info_list_free(&raw mut list) };
        Ok(counters)
    }
}

impl Tensor {
    /// A tensor with this content.
    pub fn new(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
        let kind = to_element_type(dtype).ok_or_else(|| format!("elements of {dtype} are not supported"))?;
        let mut dims: Vec<i64> = shape.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect();
        let shape = sys::ov_shape_t { rank: i64::try_from(dims.len()).unwrap_or(0), dims: dims.as_mut_ptr() };
        // SAFETY: the shape lives longer than the call.
        let tensor = Tensor(made(|tensor| unsafe { sys::ov_tensor_create(kind, shape, tensor) })?);
        let (start, length) = tensor.memory()?;
        if length != bytes.len() {
            return Err(format!("{} bytes are given for {length}", bytes.len()));
        }
        if length > 0 {
            // SAFETY: the memory was just allocated, is as long, and nothing else holds it.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start, length) };
        }
        Ok(tensor)
    }

    fn memory(&self) -> Result<(*mut u8, usize)> {
        let (mut start, mut length) = (ptr::null_mut(), 0);
        // SAFETY: both are valid places to write to.
        check(unsafe { sys::ov_tensor_get_byte_size(self.0.as_ptr(), &raw mut length) })?;
        // SAFETY: as above.
        check(unsafe { sys::ov_tensor_data(self.0.as_ptr(), &raw mut start) })?;
        Ok((start.cast(), length))
    }

    /// Its content.
    pub fn bytes(&self) -> Result<&[u8]> {
        let (start, length) = self.memory()?;
        // SAFETY: the memory is as long and lives as long as the tensor.
        Ok(if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, length) } })
    }

    /// Its sizes.
    pub fn shape(&self) -> Result<Vec<usize>> {
        let mut shape = sys::ov_shape_t { rank: 0, dims: ptr::null_mut() };
        // SAFETY: `shape` is a valid place to write to.
        check(unsafe { sys::ov_tensor_get_shape(self.0.as_ptr(), &raw mut shape) })?;
        let rank = usize::try_from(shape.rank).unwrap_or(0);
        // SAFETY: the shape holds as many sizes as its rank says.
        let dims = if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(shape.dims, rank) } };
        let sizes = dims.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
        // SAFETY: the shape is ours, and not used again.
        check(unsafe { sys::ov_shape_free(&raw mut shape) })?;
        Ok(sizes)
    }

    /// Element type.
    pub fn dtype(&self) -> Result<DType> {
        let mut kind = sys::ov_element_type_e::DYNAMIC;
        // SAFETY: `kind` is a valid place to write to.
        check(unsafe { sys::ov_tensor_get_element_type(self.0.as_ptr(), &raw mut kind) })?;
        Ok(from_element_type(kind))
    }
}

fn from_element_type(kind: sys::ov_element_type_e) -> DType {
    use sys::ov_element_type_e as Kind;
    match kind {
        Kind::F32 => DType::F32,
        Kind::F64 => DType::F64,
        Kind::F16 => DType::F16,
        Kind::BF16 => DType::BF16,
        Kind::I8 => DType::I8,
        Kind::I16 => DType::I16,
        Kind::I32 => DType::I32,
        Kind::I64 => DType::I64,
        Kind::U8 => DType::U8,
        Kind::U16 => DType::U16,
        Kind::U32 => DType::U32,
        Kind::U64 => DType::U64,
        Kind::OV_BOOLEAN => DType::Bool,
        Kind::STRING => DType::String,
        _ => DType::Other,
    }
}

fn to_element_type(dtype: DType) -> Option<sys::ov_element_type_e> {
    use sys::ov_element_type_e as Kind;
    Some(match dtype {
        DType::F32 => Kind::F32,
        DType::F64 => Kind::F64,
        DType::F16 => Kind::F16,
        DType::BF16 => Kind::BF16,
        DType::I8 => Kind::I8,
        DType::I16 => Kind::I16,
        DType::I32 => Kind::I32,
        DType::I64 => Kind::I64,
        DType::U8 => Kind::U8,
        DType::U16 => Kind::U16,
        DType::U32 => Kind::U32,
        DType::U64 => Kind::U64,
        DType::Bool => Kind::OV_BOOLEAN,
        DType::String | DType::Other => return None,
    })
}
