//! Identity of the machine that measurements belong to.

use std::collections::BTreeSet;
use std::fmt;

/// A machine as far as timings are concerned: processor model, instruction sets, processors.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineKey {
    /// Processor model as the system names it, without surplus blanks.
    pub cpu: String,
    /// Digest of the instruction-set features, 12 hexadecimal digits.
    pub features: String,
    /// Number of logical processors.
    pub cores: usize,
}

impl MachineKey {
    /// The machine that this process runs on. Never fails: what the system does not report is
    /// `unknown`.
    pub fn detect() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self::from_cpuinfo(&info)
    }

    fn from_cpuinfo(info: &str) -> Self {
        let field = |names: &[&str]| {
            info.lines()
                .filter_map(|line| line.split_once(':'))
                .find_map(|(name, value)| names.contains(&name.trim()).then(|| value.split_whitespace().collect::<Vec<_>>().join(" ")))
        };
        let cpu = field(&["model name", "Model", "cpu model", "Processor"])
            .or_else(|| Some(format!("arm {} {}", field(&["CPU implementer"])?, field(&["CPU part"])?)))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH));
        let flags = field(&["flags", "Features"]).unwrap_or_else(detected_features);
        let mut flags: Vec<&str> = flags.split_whitespace().collect();
        flags.sort_unstable();
        flags.dedup();
        let digest = blake3::hash(flags.join(" ").as_bytes()).to_hex();
        let listed = info.lines().filter(|line| line.split(':').next().is_some_and(|n| n.trim() == "processor")).count();
        let cores = if listed > 0 { listed } else { regraft_ir::parallel::cores() };
        Self { cpu, features: digest[..12].to_owned(), cores }
    }
}

impl fmt::Display for MachineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.cpu, self.features, self.cores)
    }
}

/// Number of physical cores of this machine; of logical processors where the system does not say
/// which of them share a core.
pub(crate) fn physical_cores() -> usize {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cores_of(&info).unwrap_or_else(regraft_ir::parallel::cores)
}

/// Distinct pairs of package and core; `None` unless every processor has one.
fn cores_of(cpuinfo: &str) -> Option<usize> {
    let mut cores = BTreeSet::new();
    for processor in cpuinfo.split("\n\n").filter(|text| text.lines().any(|line| line.starts_with("processor"))) {
        let field = |name: &str| {
            let mut fields = processor.lines().filter_map(|line| line.split_once(':'));
            fields.find_map(|(key, value)| (key.trim() == name).then(|| value.trim()))
        };
        cores.insert((field("physical id")?, field("core id")?));
    }
    (!cores.is_empty()).then_some(cores.len())
}

/// Features that determine which kernels a runtime picks, for systems without `/proc/cpuinfo`.
fn detected_features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let all = [
            ("sse4.2", std::is_x86_feature_detected!("sse4.2")),
            ("avx", std::is_x86_feature_detected!("avx")),
            ("f16c", std::is_x86_feature_detected!("f16c")),
            ("fma", std::is_x86_feature_detected!("fma")),
            ("avx2", std::is_x86_feature_detected!("avx2")),
            ("avx512f", std::is_x86_feature_detected!("avx512f")),
            ("avx512bw", std::is_x86_feature_detected!("avx512bw")),
            ("avx512vnni", std::is_x86_feature_detected!("avx512vnni")),
        ];
        all.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_depends_on_model_features_and_cores_only() {
        let one = "processor\t: 0\nmodel name\t: Some  CPU\ncpu MHz\t: 1\nflags\t: avx2 fma\n\n";
        let two = "processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t: 2\nflags\t: fma avx2\n\n";
        let (a, b) = (MachineKey::from_cpuinfo(one), MachineKey::from_cpuinfo(two));
        assert_eq!(a, b);
        assert_eq!((a.cpu.as_str(), a.cores, a.features.len()), ("Some CPU", 1, 12));
        let more = format!("{one}processor\t: 1\nmodel name\t: Some CPU\nflags\t: avx2 fma\n");
        assert_eq!(MachineKey::from_cpuinfo(&more).cores, 2);
        assert_ne!(MachineKey::from_cpuinfo("flags: avx2").features, a.features);
        assert_eq!(MachineKey::detect(), MachineKey::detect());
    }

    #[test]
    fn two_processors_of_one_core_count_once() {
        let processor = |package: usize, core: usize| format!("processor\t: 0\nphysical id\t: {package}\ncore id\t\t: {core}\n\n");
        let of = |all: &[(usize, usize)]| cores_of(&all.iter().map(|(package, core)| processor(*package, *core)).collect::<String>());
        assert_eq!(of(&[(0, 0), (0, 1), (0, 0), (0, 1)]), Some(2));
        assert_eq!(of(&[(0, 0), (1, 0)]), Some(2));
        // Not every system says.
        assert_eq!((cores_of("processor\t: 0\nFeatures\t: neon\n"), cores_of("")), (None, None));
        assert!(physical_cores() >= 1);
    }
}
