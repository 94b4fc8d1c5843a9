//! Which operators are the same: an exact key of what an operator can learn.
//!
//! An operator with weights is a family of linear maps, one for each value of its weights. Two are
//! the same if their families are, where weights may be laid out anew, channels permuted, and axes
//! that input and output share exchanged. At two small bindings, chosen so that sizes which are
//! different monomials differ in one of them, the family is a set of incidences: which element of
//! each weight meets which input in which output. The key is a canonical hash of that set, by colour
//! refinement with one vertex at a time held fixed.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::coordinate::Coordinates;
use crate::loops::{Loops, unflattened};
use crate::operator::Operator;
use crate::spec::{Layer, Spec};

/// What an operator can learn, as a hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Key(pub u128);

/// Terms that an operator may have at a small binding; operators with more have no key.
const TERMS: usize = 4_000_000;
/// Rounds of refinement.
const ROUNDS: usize = 8;

/// The small bindings of a specification.
#[derive(Clone, Debug)]
pub struct Bindings {
    layers: Vec<Layer>,
}

impl Bindings {
    /// Coefficients become small primes, windows odd ones; every size of a layer is divisible by the
    /// coefficients by which it is in the specification's layers.
    pub fn new(spec: &Spec) -> Bindings {
        Bindings { layers: (0..3).map(|variant| small(spec, variant)).collect() }
    }

    /// The bindings: two for keys, and one more to check them.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

fn small(spec: &Spec, variant: usize) -> Layer {
    const EVEN: [[u64; 4]; 3] = [[2, 3, 5, 7], [3, 2, 7, 5], [2, 5, 3, 7]];
    const ODD: [[u64; 4]; 3] = [[3, 5, 7, 9], [5, 3, 9, 7], [3, 7, 5, 9]];
    let (mut evens, mut odds) = (0, 0);
    let mut values = vec![1; spec.variables.len()];
    for (v, variable) in spec.variables.iter().enumerate().filter(|(_, variable)| !variable.primary) {
        let odd = spec.layers.iter().all(|layer| layer.values[v] % 2 == 1);
        let (table, next) = if odd { (&ODD[variant], &mut odds) } else { (&EVEN[variant], &mut evens) };
        values[v] = table[*next % 4] + 10 * (*next / 4) as u64;
        *next += 1;
        debug_assert!(!variable.primary);
    }
    let mut place = 0;
    for v in 0..values.len() {
        if !spec.variables[v].primary || spec.batch.iter().any(|size| size.exponent(v) != 0) {
            continue;
        }
        // The largest product of coefficients that divides it everywhere.
        let mut demand = 1;
        let mut rest: Vec<u64> = spec.layers.iter().map(|layer| layer.values[v]).collect();
        for c in (0..values.len()).filter(|c| !spec.variables[*c].primary) {
            let powers = spec.variables[c].uses.min(2);
            for _ in 0..if spec.variables[v].uses > 0 { 1 } else { powers } {
                if spec.layers.iter().zip(&rest).all(|(layer, rest)| rest % layer.values[c] == 0) {
                    demand *= values[c];
                    rest.iter_mut().zip(&spec.layers).for_each(|(rest, layer)| *rest /= layer.values[c]);
                }
            }
        }
        // Sizes beside each other differ, and so do the bindings.
        let multiple = [[1, 2, 1], [2, 1, 2], [2, 3, 3]][variant][place % 3];
        values[v] = if demand == 1 { [4, 5, 6][variant] + place as u64 } else { demand * multiple };
        if values[v] < 4 {
            values[v] *= 2;
        }
        place += 1;
    }
    Layer { values, count: 1 }
}

/// One incidence: a vertex of each class, what tells rows of the same vertices apart, and how often.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Row {
    vertices: [u16; CLASSES],
    label: u32,
    count: u32,
}

/// Channel axes and weights that an operator may have to have a key.
const CLASSES: usize = 6;

/// The incidences of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Incidence {
    rows: Vec<Row>,
    /// Classes: channel axes first, then weights.
    channels: usize,
    sizes: Vec<usize>,
}

impl Incidence {
    /// At one binding, with two axes exchanged in input and output or not; `None` if a size is no
    /// whole number there, or there are too many terms.
    pub(crate) fn at(operator: &Operator, layer: &Layer, exchange: Option<Exchange>, coordinates: &Coordinates<'_>) -> Option<Incidence> {
        let loops = Loops::at(operator, layer, coordinates).filter(|loops| loops.len() <= TERMS)?;
        let spec = coordinates.spec;
        let channel = |axes: &[crate::spec::Axis]| -> Vec<usize> { (0..axes.len()).filter(|axis| axes[*axis].unordered).collect() };
        let (inputs, outputs) = (channel(&spec.input), channel(&spec.output));
        let sizes: Vec<usize> = inputs
            .iter()
            .map(|axis| loops.input[*axis])
            .chain(outputs.iter().map(|axis| loops.output[*axis]))
            .chain(loops.weights.iter().map(|shape| shape.iter().product()))
            .collect();
        let channels = inputs.len() + outputs.len();
        if sizes.len() > CLASSES || sizes.iter().any(|size| *size > usize::from(u16::MAX)) {
            return None;
        }
        let (x_places, y_places) =
            (places(&loops.input, &inputs, exchange.map(|e| e.input)), places(&loops.output, &outputs, exchange.map(|e| e.output)));
        let positions = y_places.iter().map(|place| place.1 + 1).max().unwrap_or(1);
        let mut packed: Vec<u128> = Vec::with_capacity(loops.len());
        loops.terms(|term| {
            let ((x_channels, x_place), (y_channels, y_place)) = (&x_places[term.input], &y_places[term.output]);
            let vertices = x_channels.iter().chain(y_channels).copied().chain(term.weights.iter().map(|w| *w as u16));
            let vertices = vertices.enumerate().fold(0u128, |packed, (class, v)| packed | u128::from(v) << (16 * class));
            packed.push(vertices << 32 | u128::from(x_place * positions + y_place));
        });
        packed.sort_unstable();
        let rows = packed
            .chunk_by(|a, b| a == b)
            .map(|alike| {
                let vertices = std::array::from_fn(|class| (alike[0] >> (32 + 16 * class)) as u16);
                Row { vertices, label: alike[0] as u32, count: alike.len() as u32 }
            })
            .collect();
        Some(Incidence { rows, channels, sizes }.simplified())
    }

    /// Without weights that another one determines, and without elements of a weight that only repeat
    /// others: neither changes what can be learned.
    fn simplified(mut self) -> Incidence {
        loop {
            let classes = self.channels..self.sizes.len();
            let absorbed = classes.clone().find(|f| classes.clone().any(|e| e != *f && self.determines(e, *f)));
            if let Some(weight) = absorbed {
                self.sizes.remove(weight);
                for row in &mut self.rows {
                    row.vertices.copy_within(weight + 1.., weight);
                }
                continue;
            }
            let before = self.rows.len();
            for class in self.channels..self.sizes.len() {
                self.merge_repeated(class);
            }
            if self.rows.len() == before {
                return self;
            }
        }
    }

    /// Whether each element of one weight meets one element of another only.
    fn determines(&self, of: usize, other: usize) -> bool {
        let mut seen: Vec<u32> = vec![u32::MAX; self.sizes[of]];
        self.rows.iter().all(|row| {
            let slot = &mut seen[row.vertices[of] as usize];
            let met = u32::from(row.vertices[other]);
            let fits = *slot == u32::MAX || *slot == met;
            *slot = met;
            fits
        })
    }

    /// Elements of a weight that meet the same, up to a factor, become one.
    fn merge_repeated(&mut self, class: usize) {
        let mut factors: Vec<u32> = vec![0; self.sizes[class]];
        for row in &self.rows {
            let factor = &mut factors[row.vertices[class] as usize];
            *factor = gcd(*factor, row.count);
        }
        let mut sums: Vec<u64> = vec![0; self.sizes[class]];
        for row in &mut self.rows {
            let element = row.vertices[class] as usize;
            row.count /= factors[element];
            let others = row.vertices[..self.sizes.len()].iter().enumerate().filter(|(c, _)| *c != class);
            let start = mix(u64::from(row.label) << 32 | u64::from(row.count));
            let hash = others.fold(start, |hash, (c, v)| mix(hash ^ ((c as u64) << 32 | u64::from(*v))));
            sums[element] = sums[element].wrapping_add(hash);
        }
        let mut first: FxHashMap<u64, u16> = FxHashMap::default();
        for (element, sum) in sums.iter().enumerate() {
            first.entry(*sum).or_insert(element as u16);
        }
        self.rows.retain(|row| {
            let element = row.vertices[class];
            first[&sums[element as usize]] == element
        });
    }

    /// A hash that no renaming of vertices changes, and the colours behind it.
    fn hash(&self) -> (u64, Vec<Vec<u64>>) {
        let start = |class: usize| mix(if class < self.channels { class as u64 + 1 } else { 100 });
        let colours = self.refined(self.sizes.iter().enumerate().map(|(class, size)| vec![start(class); *size]).collect());
        (self.summary(&colours), colours)
    }

    /// A hash that tells regular structures apart, too, which refinement alone confuses: each channel
    /// of the input is held fixed in turn.
    fn thorough(&self, hash: u64, colours: &[Vec<u64>]) -> u64 {
        if self.channels == 0 {
            return hash;
        }
        let alike = |colour: u64| colours[0].iter().filter(|other| **other == colour).count() > 1;
        let held = (0..self.sizes[0]).filter(|vertex| alike(colours[0][*vertex])).map(|vertex| {
            let mut colours = colours.to_vec();
            colours[0][vertex] = mix(colours[0][vertex] ^ 77);
            mix(self.summary(&self.refined(colours)))
        });
        mix(hash ^ held.fold(0u64, u64::wrapping_add))
    }

    /// Colours refined until they tell no more vertices apart.
    fn refined(&self, mut colours: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
        let distinct = |colours: &[Vec<u64>]| {
            let mut distinct: Vec<u64> = colours.iter().flatten().copied().collect();
            distinct.sort_unstable();
            distinct.dedup();
            distinct.len()
        };
        let mut classes = 0;
        for _ in 0..ROUNDS {
            let mut sums: Vec<Vec<u64>> = self.sizes.iter().map(|size| vec![0u64; *size]).collect();
            for row in &self.rows {
                let hash = self.row_hash(row, &colours);
                for (class, vertex) in row.vertices[..self.sizes.len()].iter().enumerate() {
                    let sum = &mut sums[class][*vertex as usize];
                    *sum = sum.wrapping_add(hash);
                }
            }
            for (class, sums) in sums.into_iter().enumerate() {
                for (colour, sum) in colours[class].iter_mut().zip(sums) {
                    // An element that meets nothing is as good as absent.
                    *colour = if sum == 0 { 0 } else { mix(*colour ^ mix(sum)) };
                }
            }
            let found = distinct(&colours);
            if found == classes {
                break;
            }
            classes = found;
        }
        colours
    }

    /// A row's hash: channel axes by position, weights in any order. Colours are well mixed already, so
    /// that one multiplication for each is enough.
    fn row_hash(&self, row: &Row, colours: &[Vec<u64>]) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let colour = |class: usize| colours[class][row.vertices[class] as usize];
        let start = (u64::from(row.label) << 32 | u64::from(row.count)).wrapping_mul(ODD);
        let channels = (0..self.channels).fold(start, |hash, class| (hash.rotate_left(23) ^ colour(class)).wrapping_mul(ODD));
        let weights = (self.channels..self.sizes.len()).fold(0u64, |sum, class| sum.wrapping_add(colour(class)));
        mix(channels ^ weights.rotate_left(31))
    }

    fn summary(&self, colours: &[Vec<u64>]) -> u64 {
        let rows = self.rows.iter().fold(0u64, |sum, row| sum.wrapping_add(mix(self.row_hash(row, colours))));
        mix(rows ^ mix(self.sizes.len() as u64))
    }
}

/// For each position of a tensor, two axes exchanged or not: its positions on the channel axes, and
/// its place on the others.
fn places(shape: &[usize], channels: &[usize], exchange: Option<(usize, usize)>) -> Vec<(SmallVec<[u16; 2]>, u32)> {
    let volume: usize = shape.iter().product();
    let place = |flat: usize| {
        let mut at = unflattened(flat, shape);
        if let Some((a, b)) = exchange {
            at.swap(a, b);
        }
        let others = (0..at.len()).filter(|axis| !channels.contains(axis));
        let place = others.fold(0, |place, axis| place * shape[axis] + at[axis]);
        (channels.iter().map(|axis| at[*axis] as u16).collect(), place as u32)
    };
    (0..volume).map(place).collect()
}

/// Two axes that input and output share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    input: (usize, usize),
    output: (usize, usize),
}

/// The pairs of axes, height and width, that can be exchanged in input and output together.
pub(crate) fn exchanges(spec: &Spec) -> Vec<Exchange> {
    let pairs = |axes: &[crate::spec::Axis]| {
        let ordered: Vec<usize> = (0..axes.len()).filter(|axis| !axes[*axis].unordered).collect();
        let mut pairs = Vec::new();
        for (i, a) in ordered.iter().enumerate() {
            pairs.extend(ordered[i + 1..].iter().filter(|b| axes[*a].size == axes[**b].size).map(|b| (*a, *b)));
        }
        pairs
    };
    let inputs = pairs(&spec.input);
    let fits = |input: (usize, usize), output: (usize, usize)| spec.input[input.0].size == spec.output[output.0].size;
    inputs
        .into_iter()
        .filter_map(|input| pairs(&spec.output).into_iter().find(|output| fits(input, *output)).map(|output| Exchange { input, output }))
        .collect()
}

impl Key {
    /// The key of an operator; `None` if a size of it is no whole number at the small bindings, or it
    /// has too many terms there.
    pub fn of(operator: &Operator, bindings: &Bindings, coordinates: &Coordinates<'_>) -> Option<Key> {
        let at = |k: usize, exchange| Incidence::at(operator, &bindings.layers[k], exchange, coordinates);
        let mut variants = Vec::new();
        for exchange in std::iter::once(None).chain(exchanges(coordinates.spec).into_iter().map(Some)) {
            let incidence = at(0, exchange)?;
            let (hash, colours) = incidence.hash();
            variants.push((hash, exchange, incidence, colours));
        }
        // The same exchange at both bindings; which one, the first decides where it can.
        let least = variants.iter().map(|variant| variant.0).min()?;
        let keys = variants
            .iter()
            .filter(|variant| variant.0 == least)
            .map(|(hash, exchange, incidence, colours)| Some([incidence.thorough(*hash, colours), at(1, *exchange)?.hash().0]));
        let keys = keys.collect::<Option<Vec<[u64; 2]>>>()?.into_iter().min()?;
        Some(Key(u128::from(keys[0]) << 64 | u128::from(keys[1])))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A good mixer of 64 bits (the finalizer of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
