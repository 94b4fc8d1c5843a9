//! Which operators are the same: an exact key of what an operator can learn.
//!
//! An operator with weights is a family of linear maps, one for each value of its weights. Two are
//! the same if their families are, where weights may be laid out anew, channels permuted, and axes
//! that input and output share exchanged. At two small bindings, chosen so that sizes which are
//! different monomials differ in one of them, the family is a set of incidences: which element of
//! each weight meets which input in which output. The key is a canonical hash of that set, by
//! colour refinement with one vertex at a time held fixed.

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
/// What heights and widths, and what channels may at most have to be divisible by at a small
/// binding: the first for which a dense layer through half of its channels has not too many terms
/// there.
const DIVISORS: [[u64; 2]; 4] = [[64, u64::MAX], [16, 36], [9, 18], [6, 12]];
/// Windows may have so many times more elements at a small binding than those of the dense layer.
const WINDOWS: f64 = 3.0;
/// Rounds of refinement.
const ROUNDS: usize = 8;
/// The same for a first look.
const LOOK: usize = 1;

/// The small bindings of a specification.
#[derive(Clone, Debug)]
pub struct Bindings {
    layers: Vec<Layer>,
}

impl Bindings {
    /// Coefficients become small primes, windows odd ones; every size of a layer is divisible by
    /// the coefficients by which it is in the specification's layers.
    pub fn new(spec: &Spec) -> Bindings {
        let at = |most: [u64; 2]| -> Vec<Layer> { (0..3).map(|variant| small(spec, variant, most)).collect() };
        let fits = |layers: &Vec<Layer>| layers[..2].iter().all(|layer| spec.half_rank_terms_at(layer) <= TERMS as f64 / WINDOWS);
        let [.., least] = DIVISORS;
        Bindings { layers: DIVISORS.into_iter().map(at).find(fits).unwrap_or_else(|| at(least)) }
    }

    /// The bindings: two for keys, and one more to check them.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

fn small(spec: &Spec, variant: usize, [space, most_channels]: [u64; 2]) -> Layer {
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
            let channels = spec.variables[v].uses > 0;
            for _ in 0..if channels { 1 } else { spec.variables[c].uses.min(2) } {
                let is_small = demand * values[c] <= if channels { most_channels } else { space };
                if is_small && spec.layers.iter().zip(&rest).all(|(layer, rest)| rest % layer.values[c] == 0) {
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

/// One incidence: a vertex of each class, what tells rows of the same vertices apart, and how
/// often.
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
    /// Axes of input and output whose positions are labels: those that are no channels.
    places: [Vec<usize>; 2],
}

impl Incidence {
    /// At one binding; `None` if a size is no whole number there, or there are too many terms.
    pub(crate) fn at(operator: &Operator, layer: &Layer, coordinates: &Coordinates<'_>) -> Option<Incidence> {
        let loops = Loops::at(operator, layer, coordinates).filter(|loops| loops.len() <= TERMS)?;
        let spec = coordinates.spec;
        let (input, output) = (Places::of(&loops.input, &spec.input), Places::of(&loops.output, &spec.output));
        let channels = input.channels.iter().chain(&output.channels);
        let sizes: Vec<usize> = channels.map(|(_, size)| *size).chain(loops.weights.iter().map(|shape| shape.iter().product())).collect();
        let channels = input.channels.len() + output.channels.len();
        if sizes.len() > CLASSES || sizes.iter().any(|size| *size > usize::from(u16::MAX)) {
            return None;
        }
        // Vertices of the input and the output, and the label, are known for each of their
        // positions.
        let outputs = output.count();
        let packed_at = |places: &Places, first: usize, factor: usize| -> Vec<u128> {
            let packed = places.at.iter().map(|(vertices, place)| {
                let vertices =
                    vertices.iter().enumerate().fold(0, |packed, (class, v)| packed | u128::from(*v) << (32 + 16 * (first + class)));
                vertices | (*place as usize * factor) as u128
            });
            packed.collect()
        };
        let (x, y) = (packed_at(&input, 0, outputs), packed_at(&output, input.channels.len(), 1));
        let mut packed: Vec<u128> = Vec::with_capacity(loops.len());
        loops.terms(|term| {
            let weights = term.weights.iter().enumerate();
            let weights = weights.fold(0, |packed, (class, w)| packed | (*w as u128) << (32 + 16 * (channels + class)));
            // Labels add without a carry into the vertices: there are fewer than 2^32 of them.
            packed.push((x[term.input] + y[term.output]) | weights);
        });
        packed.sort_unstable();
        let rows = packed
            .chunk_by(|a, b| a == b)
            .map(|alike| {
                let vertices = std::array::from_fn(|class| (alike[0] >> (32 + 16 * class)) as u16);
                Row { vertices, label: alike[0] as u32, count: alike.len() as u32 }
            })
            .collect();
        Some(Incidence { rows, channels, sizes, places: [input.shape, output.shape] }.simplified())
    }

    /// The same with two axes exchanged in input and output.
    fn exchanged(&self, exchange: Exchange) -> Incidence {
        let table = |shape: &[usize], (a, b): (usize, usize)| -> Vec<usize> {
            let place = |flat| {
                let mut at = unflattened(flat, shape);
                at.swap(a, b);
                at.iter().zip(shape).fold(0, |place, (at, size)| place * size + at)
            };
            (0..shape.iter().product()).map(place).collect()
        };
        let [input, output] = &self.places;
        let (x, y) = (table(input, exchange.input), table(output, exchange.output));
        let mut exchanged = self.clone();
        for row in &mut exchanged.rows {
            let label = row.label as usize;
            row.label = (x[label / y.len()] * y.len() + y[label % y.len()]) as u32;
        }
        exchanged
    }

    /// Without weights that another one determines, and without elements of a weight that only
    /// repeat others: neither changes what can be learned.
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

    /// A hash that no renaming of vertices changes, and the colours behind it: those of each class
    /// in turn.
    fn hash(&self, rounds: usize) -> (u64, Vec<u64>) {
        let start = |class: usize| mix(if class < self.channels { class as u64 + 1 } else { 100 });
        let start = self.sizes.iter().enumerate().flat_map(|(class, size)| std::iter::repeat_n(start(class), *size));
        let colours = self.refined(start.collect(), rounds);
        (self.summary(&colours), colours)
    }

    /// A hash that tells regular structures apart, too, which refinement alone confuses: each
    /// channel of the input is held fixed in turn.
    fn thorough(&self, hash: u64, colours: &[u64]) -> u64 {
        if self.channels == 0 {
            return hash;
        }
        let inputs = &colours[..self.sizes[0]];
        let alike = |colour: u64| inputs.iter().filter(|other| **other == colour).count() > 1;
        let held = (0..inputs.len()).filter(|vertex| alike(inputs[*vertex])).map(|vertex| {
            let mut colours = colours.to_vec();
            colours[vertex] = mix(colours[vertex] ^ 77);
            mix(self.summary(&self.refined(colours, ROUNDS)))
        });
        mix(hash ^ held.fold(0u64, u64::wrapping_add))
    }

    /// Colours refined until they tell no more vertices apart.
    fn refined(&self, mut colours: Vec<u64>, rounds: usize) -> Vec<u64> {
        let mut classes = 0;
        for _ in 0..rounds {
            let mut sums = vec![0u64; colours.len()];
            match self.sizes.len() {
                1 => self.gather::<1>(&colours, &mut sums),
                2 => self.gather::<2>(&colours, &mut sums),
                3 => self.gather::<3>(&colours, &mut sums),
                4 => self.gather::<4>(&colours, &mut sums),
                5 => self.gather::<5>(&colours, &mut sums),
                _ => self.gather::<CLASSES>(&colours, &mut sums),
            }
            for (colour, sum) in colours.iter_mut().zip(sums) {
                // An element that meets nothing is as good as absent.
                *colour = if sum == 0 { 0 } else { mix(*colour ^ mix(sum)) };
            }
            let mut distinct = colours.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() == classes {
                break;
            }
            classes = distinct.len();
        }
        colours
    }

    /// Adds to each vertex the hashes of its rows, where there are `N` classes: channel axes by
    /// position, weights in any order. Colours are well mixed already, so that one multiplication
    /// for each is enough.
    fn gather<const N: usize>(&self, colours: &[u64], sums: &mut [u64]) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut first = [0; N];
        for class in 1..N.min(self.sizes.len()) {
            first[class] = first[class - 1] + self.sizes[class - 1];
        }
        for row in &self.rows {
            let at: [usize; N] = std::array::from_fn(|class| first[class] + usize::from(row.vertices[class]));
            let mut hash = (u64::from(row.label) << 32 | u64::from(row.count)).wrapping_mul(ODD);
            let mut weights = 0u64;
            for (class, at) in at.iter().enumerate() {
                if class < self.channels {
                    hash = (hash.rotate_left(23) ^ colours[*at]).wrapping_mul(ODD);
                } else {
                    weights = weights.wrapping_add(colours[*at]);
                }
            }
            let hash = mix(hash ^ weights.rotate_left(31));
            for at in at {
                sums[at] = sums[at].wrapping_add(hash);
            }
        }
    }

    /// A hash of how many vertices have which colour.
    fn summary(&self, colours: &[u64]) -> u64 {
        let met = colours.iter().filter(|colour| **colour != 0);
        mix(met.fold(0u64, |sum, colour| sum.wrapping_add(mix(*colour))) ^ mix(self.sizes.len() as u64))
    }
}

/// The positions of a tensor: on its channel axes, and on the others.
struct Places {
    /// Number and size of each channel axis.
    channels: SmallVec<[(usize, usize); 2]>,
    /// Sizes of the other axes.
    shape: Vec<usize>,
    /// For each position, that on every channel axis, and the place on the others, row by row.
    at: Vec<(SmallVec<[u16; 2]>, u32)>,
}

impl Places {
    fn of(shape: &[usize], axes: &[crate::spec::Axis]) -> Places {
        let channels: SmallVec<[(usize, usize); 2]> =
            (0..axes.len()).filter(|axis| axes[*axis].unordered).map(|axis| (axis, shape[axis])).collect();
        let others: Vec<usize> = (0..axes.len()).filter(|axis| !axes[*axis].unordered).collect();
        let place = |flat: usize| {
            let at = unflattened(flat, shape);
            let place = others.iter().fold(0, |place, axis| place * shape[*axis] + at[*axis]);
            (channels.iter().map(|(axis, _)| at[*axis] as u16).collect(), place as u32)
        };
        let at = (0..shape.iter().product()).map(place).collect();
        Places { at, shape: others.iter().map(|axis| shape[*axis]).collect(), channels }
    }

    /// How many places there are.
    fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Two axes that input and output share, by their numbers among those that are no channels.
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
            let alike = (i + 1..ordered.len()).filter(|j| axes[*a].size == axes[ordered[*j]].size);
            pairs.extend(alike.map(|j| ((i, j), axes[*a].size)));
        }
        pairs
    };
    let inputs = pairs(&spec.input);
    let exchange =
        |(input, size)| pairs(&spec.output).into_iter().find(|(_, other)| *other == size).map(|(output, _)| Exchange { input, output });
    inputs.into_iter().filter_map(exchange).collect()
}

impl Key {
    /// The key of an operator; `None` if a size of it is no whole number at the small bindings, or
    /// it has too many terms there.
    pub fn of(operator: &Operator, bindings: &Bindings, coordinates: &Coordinates<'_>) -> Option<Key> {
        let at = |k: usize| Incidence::at(operator, &bindings.layers[k], coordinates);
        let (first, second) = (at(0)?, at(1)?);
        // The same exchange at both bindings; which one, a first look decides where it can.
        let mut looks = vec![(first.hash(LOOK).0, first.clone(), None)];
        for exchange in exchanges(coordinates.spec) {
            let exchanged = first.exchanged(exchange);
            looks.push((exchanged.hash(LOOK).0, exchanged, Some(exchange)));
        }
        let least = looks.iter().map(|look| look.0).min()?;
        let keys = looks.iter().filter(|look| look.0 == least).map(|(_, first, exchange)| {
            let (hash, colours) = first.hash(ROUNDS);
            let second = exchange.map_or_else(|| second.hash(ROUNDS), |exchange| second.exchanged(exchange).hash(ROUNDS));
            u128::from(first.thorough(hash, &colours)) << 64 | u128::from(second.0)
        });
        keys.min().map(Key)
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
