//! `Agent`: the published network in plain loops (X-RLflow, section 3.3 and table 4; where the
//! paper and its code differ, as in the code).

use regraft_ir::SplitMix64;

use crate::encoded::{EDGE, TYPES};
use crate::rows::{Pool, ROUNDS, Rows};
use crate::weights::{HEAD, POOLED, Part, WIDTH, Weights};

/// Slope of a leaky ReLU for negative numbers.
pub const SLOPE: f32 = 0.01;

/// An agent, and what it has computed so far: rows do not change, so each is computed once.
pub struct Agent<'w> {
    weights: &'w Weights,
    /// Numbers of each row, before the first round and after each.
    numbers: [Vec<[f32; WIDTH]>; ROUNDS + 1],
    /// What those of each row become on the way to its readers, in each round.
    sent: [Vec<[f32; WIDTH]>; ROUNDS],
}

/// What an agent makes of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// How likely it takes each candidate, and stops: logarithms.
    pub likely: Vec<f32>,
    /// What it expects to earn from here.
    pub value: f32,
}

impl Judgement {
    /// The most likely action.
    pub fn most_likely(&self) -> usize {
        let actions = self.likely.iter().enumerate();
        actions.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0))).map_or(0, |(action, _)| action)
    }

    /// An action, as likely as it says.
    pub fn draw(&self, random: &mut SplitMix64) -> usize {
        let mut left = random.unit() as f32;
        let drawn = self.likely.iter().position(|likely| {
            left -= likely.exp();
            left < 0.0
        });
        drawn.unwrap_or(self.likely.len() - 1)
    }
}

impl<'w> Agent<'w> {
    /// With these weights.
    pub fn new(weights: &'w Weights) -> Agent<'w> {
        Agent { weights, numbers: Default::default(), sent: Default::default() }
    }

    /// Of a state: the graphs of its candidates, and its own last. Rows are always the same ones,
    /// and more of them from time to time.
    pub fn judge(&mut self, rows: &Rows, pools: &[Pool]) -> Judgement {
        self.compute(rows);
        let mut slots = Vec::with_capacity(pools.len() * POOLED);
        for pool in pools {
            slots.extend(self.pooled(pool));
        }
        let [logits, value] = [0, 1].map(|head| self.head(head, &slots, if head == 0 { pools.len() } else { 1 }));
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = logits.iter().map(|logit| (logit - most).exp()).sum();
        Judgement { likely: logits.iter().map(|logit| logit - most - sum.ln()).collect(), value: value[0] }
    }

    /// All rows that were not computed before.
    fn compute(&mut self, rows: &Rows) {
        for row in &rows.first[self.numbers[0].len()..] {
            let mut inputs = [0.0; 2 * EDGE];
            inputs[..EDGE].copy_from_slice(&row.out.map(f32::from_bits));
            inputs[EDGE..].copy_from_slice(&row.into.map(f32::from_bits));
            let matrix = self.weights.part(Part::Node);
            let mut numbers = fixed(self.weights.part(Part::NodeBias));
            add_product(&mut numbers, &[1.0], &matrix[usize::from(row.kind) * WIDTH..]);
            add_product(&mut numbers, &inputs, &matrix[TYPES * WIDTH..]);
            self.numbers[0].push(numbers);
        }
        for round in 0..ROUNDS {
            let (bias, matrix) = (self.weights.part(Part::RoundBias(round)), self.weights.part(Part::Round(round)));
            for row in &self.numbers[round][self.sent[round].len()..] {
                let mut sent = fixed(bias);
                add_product(&mut sent, row, matrix);
                self.sent[round].push(sent);
            }
            let attention = Attention::of(self.weights, round);
            for senders in &rows.rounds[round][self.numbers[round + 1].len()..] {
                let numbers = attention.attend(&self.sent[round], senders);
                self.numbers[round + 1].push(numbers);
            }
        }
    }

    /// The numbers of a graph.
    fn pooled(&self, pool: &Pool) -> [f32; POOLED] {
        let mut sum = [0.0; WIDTH];
        for (row, count) in pool.iter() {
            let numbers = &self.numbers[ROUNDS][*row as usize];
            sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += *count as f32 * number);
        }
        let mut pooled = fixed(self.weights.part(Part::PooledBias));
        add_product(&mut pooled, &sum, self.weights.part(Part::Pooled));
        pooled
    }

    fn head(&self, head: usize, slots: &[f32], outputs: usize) -> Vec<f32> {
        let mut first: [f32; HEAD[0]] = fixed(self.weights.part(Part::HeadBias(head)));
        add_product(&mut first, slots, self.weights.part(Part::Head(head)));
        let mut second: [f32; HEAD[1]] = fixed(self.weights.part(Part::HiddenBias(head)));
        add_product(&mut second, &first.map(f32::tanh), self.weights.part(Part::Hidden(head)));
        let (matrix, bias) = (self.weights.part(Part::Output(head)), self.weights.part(Part::OutputBias(head)));
        let each =
            |at: usize| bias[at] + second.iter().zip(matrix[at..].iter().step_by(bias.len())).map(|(a, b)| a.tanh() * b).sum::<f32>();
        (0..outputs).map(each).collect()
    }
}

/// A round of attention: what each sender sends counts by a softmax over the senders.
struct Attention<'w> {
    sender: &'w [f32],
    receiver: &'w [f32],
    bias: f32,
    blind: bool,
}

impl<'w> Attention<'w> {
    fn of(weights: &'w Weights, round: usize) -> Attention<'w> {
        Attention {
            sender: weights.part(Part::Sender(round)),
            receiver: weights.part(Part::Receiver(round)),
            bias: weights.part(Part::LogitBias(round))[0],
            blind: weights.about.settings.defects.blind_attention,
        }
    }

    fn attend(&self, sent: &[[f32; WIDTH]], senders: &[u32]) -> [f32; WIDTH] {
        let dot = |row: u32, by: &[f32]| sent[row as usize].iter().zip(by).map(|(a, b)| a * b).sum::<f32>();
        let own = dot(senders[0], self.receiver) + self.bias;
        let logit = |row: &u32| {
            let logit = dot(*row, self.sender) + own;
            if self.blind { logit } else { leaky(logit) }
        };
        let logits: Vec<f32> = senders[1..].iter().map(logit).collect();
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let shares: Vec<f32> = logits.iter().map(|logit| (logit - most).exp()).collect();
        let total: f32 = shares.iter().sum();
        let mut sum = [0.0; WIDTH];
        for (row, share) in senders[1..].iter().zip(shares) {
            sum.iter_mut().zip(&sent[*row as usize]).for_each(|(sum, number)| *sum += share / total * number);
        }
        sum.map(leaky)
    }
}

fn leaky(value: f32) -> f32 {
    if value < 0.0 { SLOPE * value } else { value }
}

fn fixed<const N: usize>(values: &[f32]) -> [f32; N] {
    values.try_into().unwrap_or_else(|_| unreachable!("{} numbers for {N}", values.len()))
}

/// Adds to `sum` what each input, times its row of `matrix`, gives.
fn add_product<const N: usize>(sum: &mut [f32; N], inputs: &[f32], matrix: &[f32]) {
    let (rows, _) = matrix.as_chunks::<N>();
    for (input, row) in inputs.iter().zip(rows) {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += input * value);
    }
}
