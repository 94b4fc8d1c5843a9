//! Keys are equal exactly where operators are.

use std::collections::BTreeMap;

use regraft_ir::SplitMix64;
use regraft_prove::equal;
use regraft_synth::{
    Bindings, Coordinates, Coords, Dims, Explorer, Filter, Found, Loops, Operator, Plan, Sampler, Spec, Spelling, graph, presets,
};

fn spec() -> Spec {
    presets::find("resnet-18-layer").unwrap().spec
}

/// Whether two operators are proved to be the same, whatever the primary sizes, with some order of
/// the axes of the second one's weights.
fn proved(a: &Operator, b: &Operator, coordinates: &mut Coordinates<'_>) -> bool {
    let layer = Bindings::new(coordinates.spec).layers()[0].clone();
    let (Some(plan), Some(_)) = (Plan::of(a, coordinates), Plan::of(b, coordinates)) else { return false };
    let dims = Dims::symbolic(&[a, b], &layer, coordinates);
    let Ok(first) = graph(a, &plan, Spelling::Einsum, &dims, coordinates) else { return false };
    laid_out(a, b, coordinates).into_iter().any(|b| {
        let Some(plan) = Plan::of(&b, coordinates) else { return false };
        graph(&b, &plan, Spelling::Einsum, &dims, coordinates).is_ok_and(|second| equal(&first, &second).is_proved())
    })
}

/// The second operator with the axes of its weights in orders in which their sizes are those of the
/// first one's.
fn laid_out(a: &Operator, b: &Operator, coordinates: &Coordinates<'_>) -> Vec<Operator> {
    if a.weights.len() != b.weights.len() {
        return vec![];
    }
    let mut found = vec![Operator { weights: vec![], ..b.clone() }];
    for (first, second) in a.weights.iter().zip(&b.weights) {
        let wanted: Vec<_> = first.iter().map(|coord| coordinates.size(*coord)).collect();
        let orders = permutations(second);
        let orders: Vec<&Coords> =
            orders.iter().filter(|order| order.iter().map(|coord| coordinates.size(*coord)).eq(wanted.iter().copied())).collect();
        found = found
            .iter()
            .flat_map(|operator| {
                orders.iter().map(|order| Operator {
                    weights: operator.weights.iter().cloned().chain([(*order).clone()]).collect(),
                    ..operator.clone()
                })
            })
            .take(64)
            .collect();
    }
    found
}

fn permutations(coords: &Coords) -> Vec<Coords> {
    if coords.is_empty() {
        return vec![Coords::new()];
    }
    let mut found = Vec::new();
    for at in 0..coords.len() {
        let mut rest = coords.clone();
        let first = rest.remove(at);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            found.push(order);
        }
    }
    found
}

/// What each element of a single weight meets, at a binding: inputs in outputs, channels where they
/// are. Two operators of one weight with equal sets differ in the layout of the weight alone.
fn supports(operator: &Operator, binding: usize, coordinates: &Coordinates<'_>) -> Option<Vec<Vec<(usize, usize)>>> {
    let layer = Bindings::new(coordinates.spec).layers()[binding].clone();
    let loops = Loops::at(operator, &layer, coordinates)?;
    let mut met: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    loops.terms(|term| met.entry(term.weights[0]).or_default().push((term.output, term.input)));
    let mut sets: Vec<Vec<(usize, usize)>> = met
        .into_values()
        .map(|mut set| {
            set.sort_unstable();
            set
        })
        .collect();
    sets.sort_unstable();
    sets.dedup();
    Some(sets)
}

/// Operators, drawn, and for some of them the same with sums and weights in another order.
fn operators(explorer: &mut Explorer<'_>, count: usize) -> Vec<Found> {
    let mut sampler = Sampler::new(explorer, 5, false);
    let mut found: Vec<Found> = Vec::new();
    while found.len() < count {
        found.extend(sampler.draw(explorer).unwrap_or_default());
    }
    let mut random = SplitMix64(9);
    for at in (0..count).step_by(3) {
        let mut operator = found[at].operator.clone();
        for weight in &mut operator.weights {
            let turn = random.below(weight.len());
            weight.rotate_left(turn);
        }
        operator.sums.reverse();
        found.push(explorer.described(operator).unwrap());
    }
    found
}

#[test]
fn equal_keys_are_equal_operators_and_others_are_not() {
    let spec = spec();
    let mut explorer = Explorer::new(&spec, Filter::default());
    let found = operators(&mut explorer, 36);
    let (mut same, mut shown, mut apart) = (0, 0, 0);
    for (i, a) in found.iter().enumerate() {
        for b in &found[i + 1..] {
            if a.key == b.key {
                same += 1;
                let by_proof = proved(&a.operator, &b.operator, &mut explorer.coordinates);
                let single = a.operator.weights.len() == 1 && b.operator.weights.len() == 1;
                let by_trial = single
                    && (0..3).all(|k| supports(&a.operator, k, &explorer.coordinates) == supports(&b.operator, k, &explorer.coordinates));
                shown += usize::from(by_proof || by_trial);
                assert!(
                    by_proof || by_trial,
                    "one key, and neither proved nor the same by trial:\n{}\n{}",
                    a.operator.show(&explorer.coordinates),
                    b.operator.show(&explorer.coordinates)
                );
            } else {
                apart += 1;
                if a.operator.weights.len() == 1 && b.operator.weights.len() == 1 {
                    let alike = (0..3).all(|k| {
                        let (a, b) = (supports(&a.operator, k, &explorer.coordinates), supports(&b.operator, k, &explorer.coordinates));
                        a.is_some() && a == b
                    });
                    assert!(!alike, "two keys for one operator: {}", a.operator.show(&explorer.coordinates));
                }
            }
        }
    }
    assert!(same + apart >= 1000 && shown >= 12, "{same} pairs with one key, {shown} shown to be the same, {apart} pairs with two");
}

/// The meaning of an operator's graph is that of a convolution, for all sizes.
#[test]
fn a_convolution_is_proved_to_be_one() {
    let spec = spec();
    let mut coordinates = Coordinates::new(&spec);
    let conv = presets::operator("conv2d", &mut coordinates).unwrap();
    let plan = Plan::of(&conv, &mut coordinates).unwrap();
    let layer = Bindings::new(&spec).layers()[0].clone();
    let dims = Dims::of(&layer);
    let [written, fused] =
        [Spelling::Einsum, Spelling::Convolution].map(|spelling| graph(&conv, &plan, spelling, &dims, &coordinates).unwrap());
    assert!(equal(&written, &fused).is_proved());
}

/// Sizes with many divisors have keys, too.
#[test]
fn large_images_have_keys() {
    for side in [28, 120, 128, 144, 360] {
        let text = format!(
            "dense = \"sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]\"\n\
             input = [\"N\", \"C_in\", \"H\", \"W\"]\noutput = [\"N\", \"C_out\", \"H\", \"W\"]\nbatch = [\"N\"]\n\
             unordered = [\"C_in\", \"C_out\"]\n[variables]\nC_in = 3\nC_out = 4\n[coefficients]\nk = [3, 2]\ns = [2, 3]\ng = [8, 3]\n\
             [[layers]]\nN = 1\nC_in = 96\nC_out = 24\nH = {side}\nW = {side}\n"
        );
        let spec = Spec::parse(&text).unwrap();
        let mut explorer = Explorer::new(&spec, Filter::default());
        let dense = Operator::parse(&spec.dense, &mut explorer.coordinates).unwrap();
        assert!(explorer.key(&dense).is_some(), "{side}");
        for formula in presets::families(&spec) {
            let Ok(operator) = Operator::parse(&formula, &mut explorer.coordinates) else { continue };
            assert!(!formula.contains("/s; x") && !formula.contains("/g; x") || explorer.key(&operator).is_some(), "{side}: {formula}");
        }
    }
}
