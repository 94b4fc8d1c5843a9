//! The execution providers of ONNX Runtime: what runs the operators of a model.

use std::num::NonZeroUsize;

use ort::ep::{CUDA, ExecutionProvider, ExecutionProviderDispatch, XNNPACK};
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};

use crate::Clock;

/// An execution provider of ONNX Runtime. What it cannot run, processors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Provider {
    /// Processors.
    #[default]
    Cpu,
    /// CUDA, on a graphics processor of NVIDIA's.
    Cuda,
    /// XNNPACK, on processors.
    Xnnpack,
}

impl Provider {
    /// Each of them.
    pub const ALL: [Provider; 3] = [Provider::Cpu, Provider::Cuda, Provider::Xnnpack];

    /// Its name, such as `cuda`.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Cpu => "cpu",
            Provider::Cuda => "cuda",
            Provider::Xnnpack => "xnnpack",
        }
    }

    /// Whether the loaded library has been built with it.
    pub(crate) fn is_available(self) -> bool {
        match self {
            Provider::Cpu => true,
            Provider::Cuda => CUDA::is_available().unwrap_or(false),
            Provider::Xnnpack => XNNPACK::is_available().unwrap_or(false),
        }
    }

    /// How a session asks for it; not at all for processors, which every session has.
    pub(crate) fn dispatch(self, threads: usize) -> Option<ExecutionProviderDispatch> {
        let provider = match self {
            Provider::Cpu => return None,
            // By default it would multiply in 19 bits.
            Provider::Cuda => CUDA::default().with_tf32(false).build(),
            Provider::Xnnpack => {
                XNNPACK::default().with_intra_op_num_threads(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)).build()
            }
        };
        Some(provider.error_on_failure())
    }

    /// Its own memory, where inputs and outputs are while a model is timed; `None` where it is that
    /// of the process.
    pub(crate) fn memory(self) -> Option<ort::Result<MemoryInfo<'static>>> {
        match self {
            Provider::Cpu | Provider::Xnnpack => None,
            Provider::Cuda => Some(MemoryInfo::new(AllocationDevice::CUDA, 0, AllocatorType::Device, MemoryType::Default)),
        }
    }

    /// What times its runs with so many threads.
    pub(crate) fn clock(self, threads: usize) -> Clock {
        match self {
            Provider::Cpu | Provider::Xnnpack => Clock::for_threads(threads),
            Provider::Cuda => Clock::Device,
        }
    }
}
