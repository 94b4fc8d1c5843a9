//! The network of [`regraft_policy`] on tensors that know their gradients, many states at once.

use anyhow::{Context, Result};
use burn_backend::tensor::{FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{Backend, Shape, TensorData};
use burn_flex::FlexDevice;
use regraft_policy::descriptor::DESCRIPTOR;
use regraft_policy::features::{MOVE, NODE, STATE, UNKNOWN};
use regraft_policy::{Among, EPSILON, Part, ROUNDS, STEP, Sample, Side, WIDTH};

use crate::executor::{tensor, values};

/// Regrets are compared at this scale: of two moves that differ by a step, the better one is some e
/// times as likely.
const TEMPERATURE: f32 = 0.4 * STEP;
/// How much the values of states weigh beside the choice of moves.
const VALUES: f32 = 4.0;

/// A sum over some rows for each row: where from, where to, and how much.
#[derive(Default)]
struct Links {
    from: Vec<i32>,
    to: Vec<i32>,
    share: Vec<f32>,
    rows: usize,
}

impl Links {
    /// One more row: the mean of these.
    fn mean(&mut self, of: impl ExactSizeIterator<Item = usize>) {
        let share = 1.0 / of.len().max(1) as f32;
        for from in of {
            self.from.push(from as i32);
            self.to.push(self.rows as i32);
            self.share.push(share);
        }
        self.rows += 1;
    }

    fn apply<B: Backend<Device = FlexDevice>>(&self, rows: &FloatTensor<B>, width: usize) -> FloatTensor<B> {
        let zeros = tensor::<B>(vec![0.0; self.rows * width], &[self.rows, width], &FlexDevice);
        if self.from.is_empty() {
            return zeros;
        }
        let read = B::float_select(rows.clone(), 0, places::<B>(&self.from));
        let scaled = B::float_mul(read, tensor::<B>(self.share.clone(), &[self.share.len(), 1], &FlexDevice));
        B::float_select_assign(zeros, 0, places::<B>(&self.to), scaled, IndexingUpdateOp::Add)
    }
}

fn places<B: Backend<Device = FlexDevice>>(at: &[i32]) -> IntTensor<B> {
    B::int_from_data(TensorData::new(at.to_vec(), [at.len()]), &FlexDevice)
}

/// Some states with their moves, as one graph.
pub struct Batch {
    states: usize,
    kinds: Vec<i32>,
    nodes: Vec<f32>,
    /// 1 for what learns from its neighbours.
    learns: Vec<f32>,
    first: Links,
    others: Links,
    readers: Links,
    moves: Vec<f32>,
    descriptors: Vec<f32>,
    first_nodes: Links,
    all_nodes: Links,
    reads: Links,
    /// The state of each move.
    owner: Vec<i32>,
    /// How likely a move should be.
    targets: Vec<f32>,
    /// The regret of each move.
    regrets: Vec<f32>,
    state: Vec<f32>,
    means: Links,
    values: Vec<f32>,
}

impl Batch {
    /// Of these samples; the numbers of rules by their index. Some kinds of operators are made
    /// unknown, as `hides` says of a sample and a kind.
    pub fn new(samples: &[&Sample], rules: &[[f32; DESCRIPTOR]], hides: &dyn Fn(usize, u8) -> bool) -> Batch {
        let mut batch = Batch {
            states: samples.len(),
            kinds: vec![],
            nodes: vec![],
            learns: vec![],
            first: Links::default(),
            others: Links::default(),
            readers: Links::default(),
            moves: vec![],
            descriptors: vec![],
            first_nodes: Links::default(),
            all_nodes: Links::default(),
            reads: Links::default(),
            owner: vec![],
            targets: vec![],
            regrets: vec![],
            state: vec![],
            means: Links::default(),
            values: vec![],
        };
        for (at, sample) in samples.iter().enumerate() {
            batch.add(at, sample, rules, hides);
        }
        batch
    }

    fn add(&mut self, at: usize, sample: &Sample, rules: &[[f32; DESCRIPTOR]], hides: &dyn Fn(usize, u8) -> bool) {
        let base = self.kinds.len();
        let mut readers = vec![Vec::new(); sample.nodes.len()];
        for (place, node) in sample.nodes.iter().enumerate() {
            self.kinds.push(if hides(at, node.kind) { UNKNOWN as i32 } else { i32::from(node.kind) });
            self.nodes.extend(node.numbers);
            self.learns.push(f32::from(u8::from(!node.constant)));
            let operands: Vec<usize> = node.operands.iter().map(|operand| base + usize::from(*operand)).collect();
            self.first.mean(operands.iter().copied().take(1).collect::<Vec<_>>().into_iter());
            self.others.mean(operands.iter().copied().skip(1).collect::<Vec<_>>().into_iter());
            node.operands.iter().for_each(|operand| readers[usize::from(*operand)].push(base + place));
        }
        readers.into_iter().for_each(|readers| self.readers.mean(readers.into_iter()));
        let learning: Vec<usize> =
            (0..sample.nodes.len()).filter(|place| !sample.nodes[*place].constant).map(|place| base + place).collect();
        self.means.mean(learning.into_iter());
        let likely: Vec<f32> = sample.moves.iter().map(|step| (-step.regret / TEMPERATURE).exp()).collect();
        let sum: f32 = likely.iter().sum();
        for (step, likely) in sample.moves.iter().zip(likely) {
            self.moves.extend(step.numbers);
            self.descriptors.extend(rules[usize::from(step.rule)]);
            let nodes = |places: &[u16]| places.iter().map(|place| base + usize::from(*place)).collect::<Vec<_>>().into_iter();
            self.first_nodes.mean(nodes(&step.nodes[..step.nodes.len().min(1)]));
            self.all_nodes.mean(nodes(&step.nodes));
            self.reads.mean(nodes(&step.reads));
            self.owner.push(at as i32);
            self.targets.push(likely / sum);
            self.regrets.push(step.regret);
        }
        self.state.extend(sample.state);
        self.values.push(sample.value);
    }

    /// The scores of all moves, and the values of all states.
    pub fn outputs<B: Backend<Device = FlexDevice>>(&self, weights: &[FloatTensor<B>]) -> [FloatTensor<B>; 2] {
        let order = Part::all();
        let part = |wanted: Part| {
            let at = order.iter().position(|part| *part == wanted);
            weights[at.unwrap_or_else(|| unreachable!("{wanted:?}"))].clone()
        };
        let count = self.kinds.len();
        let product = |rows: FloatTensor<B>, by: Part| B::float_matmul(rows, part(by));
        let fixed = |values: &[f32], width: usize| tensor::<B>(values.to_vec(), &[values.len() / width, width], &FlexDevice);
        let learns = fixed(&self.learns, 1);
        let stays = fixed(&self.learns.iter().map(|learns| 1.0 - learns).collect::<Vec<_>>(), 1);
        let mut rows = B::float_select(part(Part::Kind), 0, places::<B>(&self.kinds));
        rows = B::float_add(rows, product(fixed(&self.nodes, NODE), Part::Node));
        rows = normalized::<B>(B::float_add(rows, part(Part::NodeBias)), count);
        for round in 0..ROUNDS {
            let mut sum = B::float_add(product(rows.clone(), Part::Round(round, Side::Itself)), part(Part::RoundBias(round)));
            for (links, side) in [(&self.first, Side::First), (&self.others, Side::Others), (&self.readers, Side::Readers)] {
                sum = B::float_add(sum, product(links.apply::<B>(&rows, WIDTH), Part::Round(round, side)));
            }
            let next = normalized::<B>(B::float_add(rows.clone(), B::relu(sum)), count);
            rows = B::float_add(B::float_mul(rows, stays.clone()), B::float_mul(next, learns.clone()));
        }
        let mut hidden = B::float_add(product(fixed(&self.moves, MOVE), Part::MoveNumbers), part(Part::MoveBias));
        hidden = B::float_add(hidden, product(fixed(&self.descriptors, DESCRIPTOR), Part::Rule));
        for (links, among) in [(&self.first_nodes, Among::First), (&self.all_nodes, Among::All), (&self.reads, Among::Read)] {
            hidden = B::float_add(hidden, product(links.apply::<B>(&rows, WIDTH), Part::MoveNodes(among)));
        }
        let second = B::float_add(product(B::relu(hidden), Part::MoveHidden), part(Part::MoveHiddenBias));
        let scores = product(B::relu(second), Part::Score);
        let mut hidden = B::float_add(product(fixed(&self.state, STATE), Part::StateNumbers), part(Part::StateBias));
        hidden = B::float_add(hidden, product(self.means.apply::<B>(&rows, WIDTH), Part::StateNodes));
        let values = B::float_add(product(B::relu(hidden), Part::Value), part(Part::ValueBias));
        [scores, values]
    }

    /// The loss of these outputs: the cross entropy of the moves, and the squared errors of the
    /// values.
    ///
    /// # Errors
    ///
    /// If the backend has no numbers.
    pub fn loss<B: Backend<Device = FlexDevice>>(&self, [scores, found]: [FloatTensor<B>; 2]) -> Result<FloatTensor<B>> {
        let moves = self.owner.len();
        // The largest score of each state is taken off: it changes nothing, and no exponential
        // overflows.
        let known = values::<B>(B::float_detach(scores.clone()))?;
        let mut most = vec![f32::NEG_INFINITY; self.states];
        known.iter().zip(&self.owner).for_each(|(score, at)| most[*at as usize] = most[*at as usize].max(*score));
        let off: Vec<f32> = self.owner.iter().map(|at| most[*at as usize]).collect();
        let scores = B::float_sub(scores, tensor::<B>(off, &[moves, 1], &FlexDevice));
        let zeros = tensor::<B>(vec![0.0; self.states], &[self.states, 1], &FlexDevice);
        let sums = B::float_select_assign(zeros, 0, places::<B>(&self.owner), B::float_exp(scores.clone()), IndexingUpdateOp::Add);
        let own = B::float_sum(B::float_mul(scores, tensor::<B>(self.targets.clone(), &[moves, 1], &FlexDevice)));
        let choice = B::float_sub(B::float_sum(B::float_log(sums)), own);
        let off = B::float_sub(found, tensor::<B>(self.values.clone(), &[self.states, 1], &FlexDevice));
        let square = B::float_sum(B::float_mul(off.clone(), off));
        let loss = B::float_add(choice, B::float_mul_scalar(square, VALUES.into()));
        Ok(B::float_div_scalar(loss, (self.states as f32).into()))
    }

    /// How good these outputs are.
    ///
    /// # Errors
    ///
    /// If the backend has no numbers.
    pub fn quality<B: Backend<Device = FlexDevice>>(&self, [scores, found]: [FloatTensor<B>; 2]) -> Result<Quality> {
        let (scores, found) = (values::<B>(scores)?, values::<B>(found)?);
        let mut quality = Quality::default();
        for (state, (value, wanted)) in found.iter().zip(&self.values).enumerate() {
            let own: Vec<usize> = (0..self.owner.len()).filter(|at| self.owner[*at] as usize == state).collect();
            let mut order = own.clone();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            let good = |at: &usize| self.regrets[*at] < 0.5 * STEP;
            let likely = own.iter().map(|at| scores[*at]).fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = own.iter().map(|at| (scores[*at] - likely).exp()).sum();
            let entropy: f32 = own.iter().map(|at| self.targets[*at] * (sum.ln() + likely - scores[*at])).sum();
            quality.states += 1.0;
            quality.first += f64::from(u8::from(order.first().is_some_and(good)));
            quality.third += f64::from(u8::from(order.iter().take(3).any(good)));
            quality.loss += f64::from(entropy);
            quality.off += f64::from((value - wanted).abs());
            quality.chance += own.iter().filter(|at| good(at)).count() as f64 / own.len() as f64;
        }
        Ok(quality)
    }
}

/// Sums over states.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// States.
    pub states: f64,
    /// Those whose most likely move is a best one.
    pub first: f64,
    /// Those with a best one among the three most likely.
    pub third: f64,
    /// Cross entropies.
    pub loss: f64,
    /// How far the values are off.
    pub off: f64,
    /// Shares of best moves: how often a move at random is one.
    pub chance: f64,
}

impl Quality {
    /// Means over states.
    pub fn means(self) -> Quality {
        let mean = |sum: f64| sum / self.states.max(1.0);
        let Quality { first, third, loss, off, chance, .. } = self;
        Quality { states: self.states, first: mean(first), third: mean(third), loss: mean(loss), off: mean(off), chance: mean(chance) }
    }

    /// Both together.
    pub fn and(self, other: Quality) -> Quality {
        Quality {
            states: self.states + other.states,
            first: self.first + other.first,
            third: self.third + other.third,
            loss: self.loss + other.loss,
            off: self.off + other.off,
            chance: self.chance + other.chance,
        }
    }
}

fn normalized<B: Backend<Device = FlexDevice>>(rows: FloatTensor<B>, count: usize) -> FloatTensor<B> {
    let square = B::float_mean_dim(B::float_mul(rows.clone(), rows.clone()), 1);
    let root = B::float_sqrt(B::float_add_scalar(B::float_reshape(square, Shape::from(vec![count, 1])), EPSILON.into()));
    B::float_div(rows, root)
}

/// Weights as tensors, in the order of [`Part::all`].
pub fn tensors<B: Backend<Device = FlexDevice>>(weights: &[Vec<f32>]) -> Vec<FloatTensor<B>> {
    Part::all().into_iter().zip(weights).map(|(part, values)| tensor::<B>(values.clone(), &part.shape(), &FlexDevice)).collect()
}

/// The numbers of all rules of a library.
///
/// # Errors
///
/// If the shipped rules cannot be read.
pub fn descriptors() -> Result<Vec<[f32; DESCRIPTOR]>> {
    let library = regraft_rules::Library::shipped().ok().context("the shipped rules cannot be read")?;
    Ok(library.rules().iter().map(regraft_policy::descriptor::descriptor).collect())
}
