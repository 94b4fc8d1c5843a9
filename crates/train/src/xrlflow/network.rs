//! The network of [`regraft_xrlflow`] on tensors that know their gradients, many states at once.

use anyhow::Result;
use burn_backend::tensor::{FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{Backend, Shape, TensorData, TensorMetadata};
use burn_flex::FlexDevice;
use regraft_xrlflow::{EDGE, POOLED, Part, Pool, Rows, SLOPE, TYPES, Union, WIDTH};

use crate::executor::{tensor, values};

/// States, each with the graphs that it offers, as one union of graphs.
pub struct Batch {
    /// The states' own graphs first, then what each graph has more than its state's.
    union: Union,
    /// For each state, the first of its graphs, and how many there are.
    states: Vec<(usize, usize)>,
    /// Slots that are in use.
    used: usize,
}

fn places<B: Backend<Device = FlexDevice>>(at: Vec<i32>) -> IntTensor<B> {
    let count = at.len();
    B::int_from_data(TensorData::new(at, [count]), &FlexDevice)
}

fn fixed<B: Backend<Device = FlexDevice>>(values: Vec<f32>, width: usize) -> FloatTensor<B> {
    let rows = values.len() / width;
    tensor::<B>(values, &[rows, width], &FlexDevice)
}

impl Batch {
    /// Of these states.
    pub fn new(states: &[&[Pool]], rows: &Rows) -> Batch {
        let own = states.iter().map(|pools| pools[pools.len() - 1].to_vec());
        let more = states.iter().flat_map(|pools| pools.iter().map(|pool| difference(pool, &pools[pools.len() - 1])));
        let lists: Vec<Vec<(u32, i32)>> = own.chain(more).collect();
        let union = rows.union(lists.iter().map(Vec::as_slice));
        let mut first = 0;
        let ranges = states.iter().map(|pools| {
            first += pools.len();
            (first - pools.len(), pools.len())
        });
        let states: Vec<(usize, usize)> = ranges.collect();
        let used = states.iter().map(|(_, count)| *count).max().unwrap_or(0);
        Batch { union, states, used }
    }

    /// Slots that are in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Logarithms of how likely each action is, one row of slots for each state, and the values of
    /// all states. Weights are those of the slots in use, in the order of [`Part::all`].
    ///
    /// # Errors
    ///
    /// If the backend has no numbers.
    pub fn outputs<B: Backend<Device = FlexDevice>>(&self, weights: &[FloatTensor<B>], blind: bool) -> Result<[FloatTensor<B>; 2]> {
        let order = Part::all();
        let part = |wanted: Part| {
            let at = order.iter().position(|part| *part == wanted);
            weights[at.unwrap_or_else(|| unreachable!("{wanted:?}"))].clone()
        };
        let dense = |rows: FloatTensor<B>, by: Part, bias: Part| B::float_add(B::float_matmul(rows, part(by)), part(bias));
        let mut rows = dense(self.inputs::<B>(), Part::Node, Part::NodeBias);
        for (round, links) in self.union.rounds.iter().enumerate() {
            let count = links.itself.len();
            let sent = dense(rows, Part::Round(round), Part::RoundBias(round));
            let at = |these: &[u32]| places::<B>(these.iter().map(|at| *at as i32).collect());
            let (senders, receivers) = (at(&links.senders), at(&links.receivers));
            let of_sender = B::float_select(B::float_matmul(sent.clone(), part(Part::Sender(round))), 0, senders.clone());
            let itself = B::float_select(B::float_matmul(sent.clone(), part(Part::Receiver(round))), 0, at(&links.itself));
            let of_receiver = B::float_select(itself, 0, receivers.clone());
            let mut logits = B::float_add(B::float_add(of_sender, of_receiver), part(Part::LogitBias(round)));
            if !blind {
                logits = leaky::<B>(logits);
            }
            // The largest logit of each receiver is taken off: it changes nothing, and nothing
            // overflows.
            let known = values::<B>(B::float_detach(logits.clone()))?;
            let mut most = vec![f32::NEG_INFINITY; count];
            known.iter().zip(&links.receivers).for_each(|(logit, to)| most[*to as usize] = most[*to as usize].max(*logit));
            let off: Vec<f32> = links.receivers.iter().map(|to| most[*to as usize]).collect();
            let shares = B::float_exp(B::float_sub(logits, fixed::<B>(off, 1)));
            let add = IndexingUpdateOp::Add;
            let total = B::float_select_assign(fixed::<B>(vec![0.0; count], 1), 0, receivers.clone(), shares.clone(), add);
            let shares = B::float_div(shares, B::float_select(total, 0, receivers.clone()));
            let parts = B::float_mul(B::float_select(sent, 0, senders), shares);
            rows = B::float_select_assign(fixed::<B>(vec![0.0; count * WIDTH], WIDTH), 0, receivers, parts, IndexingUpdateOp::Add);
            rows = leaky::<B>(rows);
        }
        let (own, more) = self.union.graphs.split_at(self.states.len());
        let owner: Vec<i32> = (0i32..).zip(&self.states).flat_map(|(at, (_, size))| std::iter::repeat_n(at, *size)).collect();
        let own = B::float_select(summed::<B>(own, &rows), 0, places::<B>(owner));
        let graphs = B::float_add(own, summed::<B>(more, &rows));
        // A graph's own number is 0, so that its row of the matrix adds nothing.
        let count = more.len();
        let graphs = B::float_cat(vec![graphs, fixed::<B>(vec![0.0; count], 1)], 1);
        let pooled = dense(graphs, Part::Pooled, Part::PooledBias);
        // Empty slots are zeros.
        let padded = B::float_cat(vec![pooled, fixed::<B>(vec![0.0; POOLED], POOLED)], 0);
        let each = |(first, size): &(usize, usize)| -> Vec<i32> {
            (0..self.used).map(|slot| if slot < *size { first + slot } else { count } as i32).collect()
        };
        let slots = B::float_select(padded, 0, places::<B>(self.states.iter().flat_map(each).collect()));
        let slots = B::float_reshape(slots, Shape::from(vec![self.states.len(), self.used * POOLED]));
        let [logits, values] = [0, 1].map(|head| {
            let first = B::float_tanh(dense(slots.clone(), Part::Head(head), Part::HeadBias(head)));
            let second = B::float_tanh(dense(first, Part::Hidden(head), Part::HiddenBias(head)));
            dense(second, Part::Output(head), Part::OutputBias(head))
        });
        Ok([self.likely::<B>(logits)?, values])
    }

    /// Types, edges' sums, and the graph's own number.
    fn inputs<B: Backend<Device = FlexDevice>>(&self) -> FloatTensor<B> {
        let width = TYPES + 2 * EDGE + 1;
        let mut numbers = vec![0.0; self.union.first.len() * width];
        for ((kind, out, into), row) in self.union.first.iter().zip(numbers.chunks_exact_mut(width)) {
            row[usize::from(*kind)] = 1.0;
            row[TYPES..][..EDGE].copy_from_slice(out);
            row[TYPES + EDGE..][..EDGE].copy_from_slice(into);
        }
        fixed::<B>(numbers, width)
    }

    /// A softmax of each state's logits as logarithms, over the slots that it uses.
    fn likely<B: Backend<Device = FlexDevice>>(&self, logits: FloatTensor<B>) -> Result<FloatTensor<B>> {
        let known = values::<B>(B::float_detach(logits.clone()))?;
        let in_use = |at: usize, slot: usize| slot < self.states[at].1;
        let mask = |used: f32, unused: f32| {
            let each = |at: usize| (0..self.used).map(move |slot| if in_use(at, slot) { used } else { unused });
            fixed::<B>((0..self.states.len()).flat_map(each).collect(), self.used)
        };
        let most: Vec<f32> = self
            .states
            .iter()
            .zip(known.chunks_exact(self.used))
            .map(|((_, size), row)| row[..*size].iter().copied().fold(f32::NEG_INFINITY, f32::max))
            .collect();
        let logits = B::float_mul(B::float_sub(logits, fixed::<B>(most, 1)), mask(1.0, 0.0));
        let sums = B::float_sum_dim(B::float_mul(B::float_exp(logits.clone()), mask(1.0, 0.0)), 1);
        debug_assert_eq!(sums.shape().num_elements(), self.states.len());
        let sums = B::float_reshape(B::float_log(sums), Shape::from(vec![self.states.len(), 1]));
        Ok(B::float_add(B::float_sub(logits, sums), mask(0.0, UNLIKELY)))
    }

    /// 1 for the slots that a state uses.
    pub fn mask<B: Backend<Device = FlexDevice>>(&self) -> FloatTensor<B> {
        let each = |(_, size): &(usize, usize)| (0..self.used).map(|slot| f32::from(u8::from(slot < *size))).collect::<Vec<_>>();
        fixed::<B>(self.states.iter().flat_map(each).collect(), self.used)
    }
}

/// What a graph has more than another, where both are sorted.
fn difference(graph: &Pool, other: &Pool) -> Vec<(u32, i32)> {
    let mut more = Vec::new();
    let mut others = other.iter().peekable();
    for (row, count) in graph.iter() {
        while let Some((other, less)) = others.next_if(|(other, _)| other < row) {
            more.push((*other, -less));
        }
        let less = others.next_if(|(other, _)| other == row).map_or(0, |(_, less)| *less);
        if *count != less {
            more.push((*row, count - less));
        }
    }
    more.extend(others.map(|(other, less)| (*other, -less)));
    more
}

/// For each graph, the sum of the rows of its nodes.
fn summed<B: Backend<Device = FlexDevice>>(graphs: &[Vec<(u32, i32)>], rows: &FloatTensor<B>) -> FloatTensor<B> {
    let zeros = fixed::<B>(vec![0.0; graphs.len() * WIDTH], WIDTH);
    let from: Vec<i32> = graphs.iter().flatten().map(|(row, _)| *row as i32).collect();
    if from.is_empty() {
        return zeros;
    }
    let to: Vec<i32> = (0i32..).zip(graphs).flat_map(|(at, graph)| std::iter::repeat_n(at, graph.len())).collect();
    let counts = fixed::<B>(graphs.iter().flatten().map(|(_, count)| *count as f32).collect(), 1);
    let read = B::float_mul(B::float_select(rows.clone(), 0, places::<B>(from)), counts);
    B::float_select_assign(zeros, 0, places::<B>(to), read, IndexingUpdateOp::Add)
}

/// What an action that is not there is given: a probability of zero.
const UNLIKELY: f32 = -1e10;

fn leaky<B: Backend<Device = FlexDevice>>(values: FloatTensor<B>) -> FloatTensor<B> {
    let positive = B::relu(values.clone());
    let negative = B::float_sub(values, positive.clone());
    B::float_add(positive, B::float_mul_scalar(negative, SLOPE.into()))
}

/// The weights for so many slots, as tensors, in the order of [`Part::all`].
pub fn tensors<B: Backend<Device = FlexDevice>>(parts: &[Vec<f32>], slots: usize, used: usize) -> Vec<FloatTensor<B>> {
    let each = |(part, values): (Part, &Vec<f32>)| {
        let ([_, all], [inputs, outputs]) = (part.shape(slots), part.shape(used));
        let kept: Vec<f32> = values.chunks_exact(all).take(inputs).flat_map(|row| &row[..outputs]).copied().collect();
        tensor::<B>(kept, &[inputs, outputs], &FlexDevice)
    };
    Part::all().into_iter().zip(parts).map(each).collect()
}
