//! The distance to the input never exceeds what is needed, and the theorems behind it hold.

use regraft_ir::SplitMix64;
use regraft_synth::{Coordinate, Coordinates, Coords, Distances, Explorer, Filter, Size, Spec, State, presets};

/// `[H, W]` to `[N, H, W]`, or rather the other way round: a search ends with `N, H, W`.
fn spec(limits: &str) -> Spec {
    let text = format!(
        "input = [\"N\", \"H\", \"W\"]\noutput = [\"N\", \"H\"]\n[variables]\nW = 2\n[coefficients]\nk = [3, 2]\n\
         [[layers]]\nN = 4\nH = 12\nW = 15\n[limits]\nwindow-ratio = 1.0\n{limits}"
    );
    Spec::parse(&text).unwrap()
}

/// The distance of axes of these sizes, where some weight is there already.
fn distance(limits: &str, sizes: &[&[(&str, i8)]]) -> Option<u8> {
    let spec = spec(limits);
    let mut coordinates = Coordinates::new(&spec);
    let size = |factors: &&[(&str, i8)]| -> Size {
        factors.iter().map(|(name, e)| Size::power(spec.variables.iter().position(|v| v.name == *name).unwrap(), *e)).collect()
    };
    let mut data: Coords = sizes.iter().enumerate().map(|(at, s)| coordinates.make(Coordinate::Reduce(size(s), at as u8))).collect();
    data.sort_unstable();
    let weights = vec![Coords::new(); spec.limits.weights];
    let state = State { sums: data.clone(), data, weights: weights.into_iter().collect(), dropped: Coords::new() };
    Distances::default().of(&state, &mut coordinates)
}

#[test]
fn distances_of_small_examples() {
    let (n, h, w): (&[_], &[_], &[_]) = (&[("N", 1)], &[("H", 1)], &[("W", 1)]);
    let no = "merges = 0\nsplits = 0\nunfolds = 0\nexpands = 0\nweights = 1";
    assert_eq!(distance(no, &[n, h, w]), Some(0));
    let both: &[_] = &[("H", 1), ("W", 1)];
    assert_eq!(distance(no, &[n, both]), None);
    assert_eq!(distance("merges = 1\nsplits = 0\nunfolds = 0\nexpands = 0\nweights = 1", &[n, both]), Some(1));
    let k: &[_] = &[("k", 1)];
    assert_eq!(distance(no, &[n, h, w, k]), None);
    assert_eq!(distance("merges = 0\nsplits = 0\nunfolds = 1\nexpands = 0\nweights = 1", &[n, h, w, k]), Some(1));
    let part: &[_] = &[("W", 1), ("k", -1)];
    assert_eq!(distance(no, &[n, h, part, k]), None);
    assert_eq!(distance("merges = 0\nsplits = 1\nunfolds = 0\nexpands = 0\nweights = 1", &[n, h, part, k]), Some(1));
    // A size cannot come out of nothing.
    assert_eq!(distance("", &[n, h, part]), None);
}

/// Along every path to an operator, what is left is never less than the distance.
#[test]
fn no_path_is_shorter_than_the_distance() {
    let spec = presets::find("resnet-18-layer").unwrap().spec;
    let mut compared = 0;
    for named in presets::OPERATORS {
        // Without the distance, so that it cannot hide a path that contradicts it.
        let free = Filter { distance: false, ..Filter::default() };
        let mut explorer = Explorer::new(&spec, Filter::default());
        let operator = presets::operator(named.name, &mut explorer.coordinates).unwrap();
        let path = explorer.path(&operator).unwrap();
        explorer.filter = free;
        let mut state = explorer.start();
        for (at, step) in path.iter().enumerate() {
            state = state.after(step, &mut explorer.coordinates);
            let sums_to_come = path[at + 1..].iter().any(|step| matches!(step, regraft_synth::Step::Reduce(_)));
            if sums_to_come {
                continue;
            }
            let left = path.len() - 1 - at;
            let distance = explorer.distance(&state).unwrap_or_else(|| panic!("{}: step {at} is out of reach", named.name));
            assert!(usize::from(distance) <= left, "{}: {distance} > {left} after step {at}", named.name);
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

/// Appendix A.4: in a graph of splits and merges, each component with `O` axes below and `I` above
/// has at least `O - 1` splits and `I - 1` merges, and as many more of one as of the other.
#[test]
fn components_have_the_splits_and_merges_of_the_theorem() {
    let mut random = SplitMix64(7);
    for _ in 0..500 {
        let below = 1 + random.below(4);
        // Axes that are still there, by component.
        let mut axes: Vec<usize> = (0..below).collect();
        let mut component: Vec<usize> = (0..below).collect();
        let (mut splits, mut merges) = (vec![], vec![]);
        for _ in 0..random.below(8) {
            if random.below(2) == 0 && axes.len() > 1 {
                // A split joins two axes, and so their components.
                let a = axes.remove(random.below(axes.len()));
                let at = random.below(axes.len());
                let (from, to) = (component[a], component[axes[at]]);
                component.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
                splits.push(axes[at]);
            } else {
                let at = random.below(axes.len());
                axes.push(axes[at]);
                merges.push(axes[at]);
            }
        }
        let mut components = component.clone();
        components.sort_unstable();
        components.dedup();
        for c in components {
            let of = |list: &[usize]| list.iter().filter(|axis| component[**axis] == c).count();
            let outputs = component.iter().filter(|other| **other == c).count();
            let (inputs, splits, merges) = (of(&axes), of(&splits), of(&merges));
            assert!(splits + 1 >= outputs && merges + 1 >= inputs);
            assert_eq!(splits as i64 - outputs as i64, merges as i64 - inputs as i64);
        }
    }
}
