//! Layers of known networks, and operators with a name.

use crate::coordinate::Coordinates;
use crate::operator::Operator;
use crate::spec::Spec;

/// A specification with a name.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The specification.
    pub spec: Spec,
}

const TEXTS: &[(&str, &str)] = &[
    ("resnet-18-layer", include_str!("../presets/resnet-18-layer.toml")),
    ("resnet-34-layer", include_str!("../presets/resnet-34-layer.toml")),
    ("resnext-29-layer", include_str!("../presets/resnext-29-layer.toml")),
    ("densenet-121-layer", include_str!("../presets/densenet-121-layer.toml")),
    ("efficientnet-v2-s-layer", include_str!("../presets/efficientnet-v2-s-layer.toml")),
    ("gpt-2-qkv", include_str!("../presets/gpt-2-qkv.toml")),
    ("vit-linear", include_str!("../presets/vit-linear.toml")),
    ("small-network", include_str!("../presets/small-network.toml")),
];

/// Names of all presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// The preset with this name.
///
/// # Panics
///
/// If the text of a preset is no specification, which the tests rule out.
pub fn find(name: &str) -> Option<Preset> {
    let (name, text) = TEXTS.iter().find(|(known, _)| *known == name)?;
    Some(Preset { name, spec: Spec::parse(text).unwrap_or_else(|e| panic!("preset {name}: {e}")) })
}

/// An operator with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// Its formula, in variables `C_in`, `C_out`, `H`, `k_1`, `g` and `s`.
    pub formula: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

/// Operators for image layers, `[C_in, H, W]` to `[C_out, H, W]`.
pub const OPERATORS: &[Named] = &[
    Named {
        name: "conv2d",
        formula: "sum r0: C_in, r1: k_1, r2: k_1; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]",
        source: "the dense layer",
    },
    Named { name: "pointwise", formula: "sum r0: C_in; x[r0, i1, i2] * w[i0, r0]", source: "a 1x1 convolution" },
    Named {
        name: "separable",
        formula: "sum r0: C_in, r1: k_1, r2: k_1; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r1, r2] * w[i0, r0]",
        source: "pointwise, then depthwise (MobileNet has them in the other order)",
    },
    Named {
        name: "depthwise-separable",
        formula: "sum r0: C_in, r1: k_1, r2: k_1; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0] * w[r0, r1, r2]",
        source: "MobileNet, section 3.1",
    },
    Named {
        name: "grouped",
        formula: "sum r0: C_in/s, r1: k_1, r2: k_1; \
                  x[split(quotient(i0, C_out/s), r0), unfold(i1, r1), unfold(i2, r2)] \
                  * w[remainder(i0, C_out/s), split(quotient(i0, C_out/s), r0), r1, r2]",
        source: "ResNeXt, section 3",
    },
    Named { name: "shift", formula: "sum r0: C_in; x[r0, shift(i1), shift(i2)] * w[i0, r0]", source: "a fixed shift, then pointwise" },
    Named {
        name: "low-rank",
        formula: "sum r0: C_out/g, r1: C_in, r2: k_1, r3: k_1; \
                  x[r1, unfold(i1, r2), unfold(i2, r3)] * w[i0, r0] * w[r0, r1, r2, r3]",
        source: "a convolution to few channels, then pointwise",
    },
    Named {
        name: "operator-1",
        formula: "sum r0: g, r1: k_1, r2: k_1, r3: C_out/(g*s), r4: C_in/g; \
                  x[split(r0, r4), unfold(i1, r1), unfold(i2, r2)] * w[r0, r1, r2, i0, r3] * w[split(r0, r4), r2, r3]",
        source: "Syno, section 9.3, its artifact's 07889",
    },
    Named {
        name: "operator-2",
        formula: "sum r0: g, r1: k_1, r2: k_1, r3: C_out/(g*s), r4: C_in/g; \
                  x[split(r0, r4), shift(unfold(i1, r1)), unfold(i2, r2)] * w[i0, r0, r1, r3] * w[split(r0, r4), r2, r3]",
        source: "Syno, section 9.3, its artifact's 07754",
    },
];

/// The operator with this name, in a specification with its variables.
pub fn operator(name: &str, coordinates: &mut Coordinates<'_>) -> Option<Operator> {
    let named = OPERATORS.iter().find(|named| named.name == name)?;
    Operator::parse(named.formula, coordinates).ok()
}

/// Formulas of known families of operators for image layers, with the sums that a specification's
/// variables allow: low-rank and separable convolutions, grouped ones, and the published two. Some
/// may not fit the specification.
pub fn families(spec: &Spec) -> Vec<String> {
    let has = |name: &str| spec.variables.iter().any(|v| v.name == name);
    let parts: Vec<&str> = ["s", "g", "g*s"].into_iter().filter(|part| part.split('*').all(has)).collect();
    let over = |name: &str, part: &str| if part.contains('*') { format!("{name}/({part})") } else { format!("{name}/{part}") };
    if let ([.., features], [.., output], 1 | 2) = (&spec.input[..], &spec.output[..], spec.input.len()) {
        return linear(&spec.show(features.size), &spec.show(output.size), spec);
    }
    let mut ranks: Vec<String> = parts.iter().flat_map(|part| [over("C_out", part), over("C_in", part)]).collect();
    if parts.len() == 3 {
        ranks.extend(["C_out*s/g".into(), "C_in*s/g".into()]);
    }
    let Some(k) = ["k_1", "k"].into_iter().find(|name| has(name)) else {
        let mut found = Vec::new();
        for rank in &ranks {
            found.push(format!("sum r0: {rank}, r1: C_in; x[r1, i1, i2] * w[i0, r0] * w[r0, r1]"));
        }
        for part in parts {
            let (inside, block) = (over("C_in", part), over("C_out", part));
            let channel = format!("split(quotient(i0, {block}), r0)");
            found.push(format!("sum r0: {inside}; x[{channel}, i1, i2] * w[remainder(i0, {block}), {channel}]"));
        }
        return found;
    };
    let windows = format!("r1: {k}, r2: {k}");
    let mut found = Vec::new();
    for rank in &ranks {
        let x = format!("sum r0: C_in, {windows}, r3: {rank}; x[r0, unfold(i1, r1), unfold(i2, r2)]");
        found.push(format!("{x} * w[i0, r3] * w[r3, r0, r1, r2]"));
        found.push(format!("{x} * w[i0, r3, r1, r2] * w[r3, r0]"));
        found.push(format!("{x} * w[i0, r3, r2] * w[r3, r0, r1]"));
        found.push(format!("{x} * w[i0, r3, r1] * w[r3, r0, r2]"));
    }
    for part in &parts {
        let (inside, block) = (over("C_in", part), over("C_out", part));
        let channel = format!("split(quotient(i0, {block}), r0)");
        found.push(format!(
            "sum r0: {inside}, {windows}; x[{channel}, unfold(i1, r1), unfold(i2, r2)] * w[remainder(i0, {block}), {channel}, r1, r2]"
        ));
    }
    found.push(format!("sum r0: C_in, {windows}; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0] * w[r0, r1, r2]"));
    found.push(format!("sum r0: C_in, {windows}; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r1, r2] * w[i0, r0]"));
    found.push(format!("sum r0: C_in, r1: {k}; x[r0, unfold(i1, r1), i2] * w[i0, r0, r1]"));
    found.push(format!("sum r0: C_in, r1: {k}; x[r0, i1, unfold(i2, r1)] * w[i0, r0, r1]"));
    found.push("sum r0: C_in; x[r0, i1, i2] * w[i0, r0]".into());
    if parts.len() == 3 {
        for named in OPERATORS.iter().filter(|named| named.name.starts_with("operator")) {
            found.push(named.formula.replace("k_1", k));
        }
    }
    found
}

/// Families for a product of features, the last axis: through fewer of them, and in groups.
fn linear(features: &str, outputs: &str, spec: &Spec) -> Vec<String> {
    let (before, i) = if spec.input.len() == 1 { ("", "i0") } else { ("i0, ", "i1") };
    let coefficients: Vec<&str> = spec.variables.iter().filter(|v| !v.primary).map(|v| v.name.as_str()).collect();
    let pairs = coefficients.iter().enumerate().flat_map(|(at, a)| coefficients[at + 1..].iter().map(move |b| format!("({a}*{b})")));
    let mut found = Vec::new();
    for part in coefficients.iter().map(|c| (*c).to_string()).chain(pairs) {
        for size in [outputs, features] {
            found.push(format!("sum r0: {size}/{part}, r1: {features}; x[{before}r1] * w[{i}, r0] * w[r0, r1]"));
        }
        let block = format!("{outputs}/{part}");
        let channel = format!("split(quotient({i}, {block}), r0)");
        found.push(format!("sum r0: {features}/{part}; x[{before}{channel}] * w[remainder({i}, {block}), {channel}]"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn presets_are_specifications() {
        for name in names() {
            let spec = find(name).unwrap().spec;
            assert_eq!(spec.name, name);
            let mut coordinates = Coordinates::new(&spec);
            let dense = Operator::parse(&spec.dense, &mut coordinates).unwrap_or_else(|e| panic!("{name}: {e}"));
            let plan = Plan::of(&dense, &mut coordinates).unwrap();
            assert!((plan.macs / spec.dense_macs() - 1.0).abs() < 1e-9, "{name}: {} of {}", plan.macs, spec.dense_macs());
            let families = families(&spec);
            let fitting = families.iter().filter(|formula| Operator::parse(formula, &mut coordinates).is_ok()).count();
            assert!(fitting >= 4, "{name}: {fitting} of {families:?}");
        }
    }
}
