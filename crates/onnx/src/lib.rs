//! Reading and writing ONNX models.
//!
//! A [`Model`] is read from a file, whose weights stay memory-mapped; its [`graph`](Model::graph)
//! is what Regraft rewrites; the model then writes the rewritten graph back, with everything not
//! understood or not changed as it was.
//!
//! ```
//! use regraft_onnx::{Model, WriteOptions};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bytes = regraft_onnx::proto::ModelProto {
//! #     ir_version: Some(8),
//! #     graph: Some(regraft_onnx::proto::GraphProto::default()),
//! #     ..Default::default()
//! # };
//! let model = Model::from_proto(bytes)?; // or `Model::read("model.onnx")?`
//! let rewritten = model.graph().clone();
//! let written = model.write(&rewritten, &WriteOptions::default())?;
//! assert_eq!(written.proto, *model.proto());
//! # Ok(())
//! # }
//! ```

mod attribute;
mod body;
mod declared;
mod draft;
mod effects;
mod emit;
mod error;
mod external;
mod facts;
mod fixed;
mod flush;
mod fold;
mod folds;
mod formals;
mod frame;
mod import;
mod interface;
mod mapped;
mod model;
mod names;
mod opset;
mod plan;
mod presume;
#[allow(missing_docs, clippy::all)]
pub mod proto;
mod reading;
mod refusal;
mod save;
mod scope;
mod signature;
mod sizes;
mod spell;
mod stand_in;
mod symbolic;
mod tensor;
mod verbatim;
mod wire;
mod write;

pub use body::{Body, WrittenBody};
pub use draft::{Draft, destination, folder_of, is_stream};
pub use error::{LoadError, LoadFault, Location, WriteError};
pub use external::data_files;
pub use facts::{Contradiction, Fact};
pub use fixed::{FixedError, FixedInput, FixedSizes};
pub use frame::frame;
pub use import::OpaqueNode;
pub use interface::Interface;
pub use mapped::release_weights;
pub use model::{Declared, Model};
pub use opset::OpsetError;
pub use save::takes_weights;
pub use signature::{Preset, Signature, Slot};
pub use spell::Speller;
pub use verbatim::Verbatim;
pub use write::{WriteOptions, Written};
