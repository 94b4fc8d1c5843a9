//! Identity of the machine that measurements belong to.

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
}
