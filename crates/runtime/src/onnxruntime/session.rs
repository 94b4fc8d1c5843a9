//! A model that ONNX Runtime has loaded.

use std::path::PathBuf;

use ort::memory::MemoryInfo;
use ort::session::{IoBinding, Session as OrtSession, SessionInputValue};
use ort::value::ValueType;
use tempfile::TempDir;

use super::conversion::{Conversion, from_ort, to_ort};
use super::guard;
use crate::error::one_line;
use crate::{Clock, Feeds, HostTensor, OptimizedGraph, RawProfile, RuntimeError, Session, ValueInfo, inputs};

/// Values that runs are timed on.
pub(super) enum Bound {
    /// In the memory of the process.
    Host(Vec<SessionInputValue<'static>>),
    /// In that of a device, where the outputs stay, too.
    Device(Box<IoBinding>),
}

/// A model that ONNX Runtime has loaded.
pub(super) struct Opened {
    // Bound values first: they are dropped before the session.
    pub(super) bound: Option<Bound>,
    pub(super) session: OrtSession,
    pub(super) inputs: Vec<ValueInfo>,
    pub(super) outputs: Vec<ValueInfo>,
    /// The memory of its device, if it has one.
    pub(super) memory: Option<MemoryInfo<'static>>,
    pub(super) clock: Clock,
    pub(super) threads: usize,
    pub(super) profiling: bool,
    pub(super) graph: Option<OptimizedGraph>,
    pub(super) runtime: String,
    pub(super) model: String,
    /// Where the runtime writes the profile.
    pub(super) _records: Option<TempDir>,
}

impl Opened {
    fn run_error(&self, cause: &str) -> RuntimeError {
        RuntimeError::Run { runtime: self.runtime.clone(), model: self.model.clone(), cause: one_line(cause) }
    }

    /// The feeds as the runtime's values, in the order of the model's inputs.
    fn values(&self, feeds: &Feeds) -> Result<Vec<SessionInputValue<'static>>, RuntimeError> {
        // The runtime crashes when it is asked for the type of an optional output that is absent.
        if let Some(outlet) = self.session.outputs().iter().find(|outlet| matches!(outlet.dtype(), ValueType::Optional(_))) {
            return Err(self.unsupported("output", outlet.name(), "optional".to_owned()));
        }
        let ordered = inputs::ordered(&self.model, &self.inputs, feeds)?;
        let value = |(info, tensor): (&ValueInfo, &HostTensor)| {
            guard(|| to_ort(tensor).map_err(|e| e.to_string()))
                .map(SessionInputValue::Owned)
                .map_err(|cause| self.run_error(&format!("input `{}`: {cause}", info.name)))
        };
        self.inputs.iter().zip(ordered).map(value).collect()
    }

    /// Inputs that are copied to the memory of a device, and outputs that stay there.
    fn on_device(&self, values: &[SessionInputValue<'static>], memory: &MemoryInfo<'_>) -> ort::Result<IoBinding> {
        let mut binding = self.session.create_binding()?;
        for (info, value) in self.inputs.iter().zip(values) {
            if let SessionInputValue::Owned(value) = value {
                binding.bind_input(&info.name, value)?;
            }
        }
        for info in &self.outputs {
            binding.bind_output_to_device(&info.name, memory)?;
        }
        binding.synchronize_inputs()?;
        Ok(binding)
    }

    fn unsupported(&self, role: &'static str, name: &str, kind: String) -> RuntimeError {
        RuntimeError::UnsupportedValue { model: self.model.clone(), role, name: name.to_owned(), kind }
    }
}

impl Session for Opened {
    fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    fn outputs(&self) -> &[ValueInfo] {
        &self.outputs
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn run(&mut self, feeds: &Feeds) -> Result<Vec<HostTensor>, RuntimeError> {
        let values = self.values(feeds)?;
        let session = &mut self.session;
        let outputs = guard(|| {
            let outputs = session.run(&values[..]).map_err(|e| e.to_string())?;
            Ok(outputs.values().map(|value| from_ort(&value)).collect::<Vec<_>>())
        })
        .map_err(|cause| self.run_error(&cause))?;
        self.outputs
            .iter()
            .zip(outputs)
            .map(|(info, output)| match output {
                Ok(tensor) => Ok(tensor),
                Err(Conversion::Kind(kind)) => Err(self.unsupported("output", &info.name, kind)),
                Err(Conversion::Tensor(source)) => {
                    Err(RuntimeError::Tensor { place: format!("output `{}` of {}", info.name, self.model), source })
                }
            })
            .collect()
    }

    fn bind(&mut self, feeds: &Feeds) -> Result<(), RuntimeError> {
        let values = self.values(feeds)?;
        self.bound = Some(match &self.memory {
            None => Bound::Host(values),
            Some(memory) => {
                let binding = guard(|| self.on_device(&values, memory).map_err(|e| e.to_string()));
                Bound::Device(Box::new(binding.map_err(|cause| self.run_error(&cause))?))
            }
        });
        Ok(())
    }

    fn run_bound(&mut self) -> Result<(), RuntimeError> {
        let Some(bound) = &self.bound else {
            return Err(RuntimeError::NotBound { model: self.model.clone() });
        };
        let session = &mut self.session;
        let mut run = || match bound {
            Bound::Host(values) => session.run(&values[..]).map(drop),
            Bound::Device(binding) => session.run_binding(binding).map(drop).and_then(|()| binding.synchronize_outputs()),
        };
        guard(|| run().map_err(|e| e.to_string())).map_err(|cause| self.run_error(&cause))
    }

    fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
        if !self.profiling {
            return Err(RuntimeError::NotProfiling { model: self.model.clone() });
        }
        self.profiling = false;
        let session = &mut self.session;
        let file = guard(|| session.end_profiling().map_err(|e| e.to_string())).map_err(|cause| self.run_error(&cause))?;
        let file = PathBuf::from(file);
        let text = std::fs::read(&file).map_err(|source| RuntimeError::Io { path: file.clone(), source })?;
        RawProfile::from_onnxruntime_json(&text).map_err(|cause| RuntimeError::Profile { runtime: self.runtime.clone(), file, cause })
    }

    fn take_graph(&mut self) -> Option<OptimizedGraph> {
        self.graph.take()
    }
}

#[cfg(test)]
#[path = "../../tests/models/mod.rs"]
#[allow(dead_code)]
mod models;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ort::memory::{AllocationDevice, AllocatorType, MemoryType};
    use prost::Message;

    use super::models::{feeds_for, products};
    use super::*;
    use crate::onnxruntime::{ONNX_RUNTIME, OnnxRuntime};
    use crate::{ModelSource, SessionOptions};

    #[test]
    fn values_in_the_memory_of_a_device_are_run_on() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
        let packages = std::fs::read_dir(checkout).into_iter().flatten().flatten();
        let own = packages.map(|e| e.path().join("site-packages/onnxruntime/capi")).find(|p| p.is_dir());
        let named = ONNX_RUNTIME.variables.iter().any(|v| std::env::var_os(v).is_some());
        let Ok(runtime) = OnnxRuntime::load(own.as_deref().filter(|_| !named)) else {
            println!("skipped: no ONNX Runtime");
            return;
        };
        // Processors are a device, too.
        let memory = || MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::Default).unwrap();
        let bytes = products(16, 2).encode_to_vec();
        let mut session = runtime.open_in(Some(memory()), ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
        assert!(matches!(session.run_bound(), Err(RuntimeError::NotBound { .. })));
        let feeds = feeds_for(&session, 4);
        session.bind(&feeds).unwrap();
        assert!(matches!(session.bound, Some(Bound::Device(_))));
        assert!(session.time_bound(Clock::Device).unwrap() > 0);
        let Some(Bound::Device(binding)) = &session.bound else { return };
        let outputs = session.session.run_binding(binding).unwrap();
        let bound: Vec<HostTensor> = outputs.values().filter_map(|value| from_ort(&value).ok()).collect();
        drop(outputs);
        assert_eq!(bound, session.run(&feeds).unwrap());
    }
}
