//! `State`: an e-graph and what it offers.

use std::sync::Arc;

use regraft_egraph::Extraction;
use regraft_ir::Budget;

use crate::extract::{Alone, Method, Priced};
use crate::grow::Growth;
use crate::matches::Application;

/// A rewrite that was not applied yet.
pub(crate) struct Offer {
    application: Arc<Application>,
    region: u16,
    /// What it saves at best, ns.
    gain: f64,
}

/// A rule everywhere, or in one region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Action {
    pub(crate) rule: usize,
    pub(crate) region: Option<u16>,
    /// How good it seems before it is tried; those of a state add up to 1.
    pub(crate) prior: f64,
}

/// An e-graph and what it offers.
#[derive(Clone)]
pub(crate) struct State<'r> {
    pub(crate) growth: Growth<'r>,
    /// By rule.
    offers: Vec<Vec<Arc<Offer>>>,
    /// The region of each value, by its number in the e-graph.
    regions: Vec<u16>,
    /// The price of each e-node alone, by node, as far as it was asked for.
    prices: Vec<f64>,
}

impl<'r> State<'r> {
    /// What an e-graph offers, that of a network in so many regions of consecutive operators.
    pub(crate) fn new(growth: Growth<'r>, regions: u16, alone: &mut Alone<'_>, budget: &mut dyn Budget) -> State<'r> {
        let space = growth.space();
        let mut of = vec![0; space.numbers()];
        let computed: Vec<_> = space.graph().topological().into_iter().filter(|id| !space.graph().node(*id).constant).collect();
        for (at, id) in computed.iter().enumerate() {
            for port in 0..space.graph().node(*id).types.len() as u32 {
                of[space.number(id.port(port)) as usize] = (at * usize::from(regions.max(1)) / computed.len()) as u16;
            }
        }
        let offers = vec![Vec::new(); growth.rules().rules().len()];
        let mut state = State { growth, offers, regions: of, prices: Vec::new() };
        state.look(alone, budget);
        state
    }

    /// Finds what has become possible.
    fn look(&mut self, alone: &mut Alone<'_>, budget: &mut dyn Budget) {
        for application in self.growth.look(budget) {
            let space = self.growth.space();
            let replaced = application.patch.replace.first().map_or(0, |(old, _)| space.class(*old));
            let (region, gain) = (self.regions[replaced as usize], alone.gain(space, &application));
            self.offers[application.rule].push(Arc::new(Offer { application: Arc::new(application), region, gain }));
        }
    }

    /// What can be done, the most promising first; nothing if there is no room.
    pub(crate) fn actions(&self) -> Vec<Action> {
        if self.growth.is_full() {
            return Vec::new();
        }
        // What is saved per e-node made; what saves nothing is as good as it is small.
        let mut found: Vec<(f64, Action)> = Vec::new();
        for (rule, offers) in self.offers.iter().enumerate().filter(|(_, offers)| !offers.is_empty()) {
            let mut regions: Vec<u16> = offers.iter().map(|offer| offer.region).collect();
            regions.sort_unstable();
            regions.dedup();
            let parts = regions.iter().map(|region| Some(*region)).filter(|_| regions.len() > 1);
            for region in parts.chain([None]) {
                let part = offers.iter().filter(|offer| region.is_none_or(|region| region == offer.region));
                let (mut gain, mut made) = (0.0, 1.0);
                for offer in part {
                    gain += offer.gain.max(0.0);
                    made += offer.application.patch.create.len() as f64;
                }
                let score = if gain > 0.0 { gain / made } else { -made };
                found.push((score, Action { rule, region, prior: 0.0 }));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1.rule, a.1.region).cmp(&(b.1.rule, b.1.region))));
        // By rank: a price is no measure of what a rewrite makes possible.
        let all: f64 = (1..=found.len()).map(|rank| 1.0 / rank as f64).sum();
        (1..).zip(found).map(|(rank, (_, action))| Action { prior: 1.0 / f64::from(rank) / all, ..action }).collect()
    }

    /// Applies what an action stands for, and finds what has become possible, if somebody `asks`;
    /// false if nothing is new.
    pub(crate) fn act(&mut self, action: Action, asks: bool, alone: &mut Alone<'_>, budget: &mut dyn Budget) -> bool {
        let all = std::mem::take(&mut self.offers[action.rule]);
        let is_meant = |offer: &Arc<Offer>| action.region.is_none_or(|region| region == offer.region);
        let (taken, left): (Vec<_>, Vec<_>) = all.into_iter().partition(is_meant);
        self.offers[action.rule] = left;
        let before = self.growth.applied().len();
        let taken: Vec<_> = taken.into_iter().map(|offer| offer.application.clone()).collect();
        let is_new = self.growth.apply(taken, budget).is_ok_and(|applied| applied.unwrap_or(true));
        self.place(before);
        if is_new && asks && !self.growth.is_full() {
            self.look(alone, budget);
        }
        is_new
    }

    /// The e-graph, with everything applied that is known and that there is room for.
    pub(crate) fn filled(&self, budget: &mut dyn Budget) -> Growth<'r> {
        let mut growth = self.growth.clone();
        let all = self.offers.iter().flatten().map(|offer| offer.application.clone()).collect();
        // A rule that sets different types equal is wrong; what was known before is not.
        if growth.apply(all, budget).is_ok() { growth } else { self.growth.clone() }
    }

    /// Enters what the rewrites from this number on have made into the regions of what they
    /// replace.
    fn place(&mut self, from: usize) {
        let space = self.growth.space();
        self.regions.resize(space.numbers(), u16::MAX);
        for (number, application) in self.growth.applied().iter().enumerate().skip(from) {
            let replaced = application.patch.replace.first().map(|(old, _)| self.regions[space.number(*old) as usize]);
            let region = replaced.unwrap_or(0);
            for id in self.growth.made(number as u32) {
                for port in 0..space.graph().node(*id).types.len() as u32 {
                    let own = &mut self.regions[space.number(id.port(port)) as usize];
                    *own = if *own == u16::MAX { region } else { *own };
                }
            }
        }
    }

    /// What extraction finds.
    pub(crate) fn extraction(&mut self, method: Method, alone: &mut Alone<'_>) -> Option<Extraction> {
        let State { growth, prices, .. } = self;
        let space = growth.space();
        for node in prices.len()..space.graph().capacity() {
            let id = regraft_ir::NodeId(node as u32);
            prices.push(if space.is_live(id) { alone.price(space, id) as f64 } else { 0.0 });
        }
        let priced = Priced::of(growth, &mut |_, id| prices[id.0 as usize]).ok()?;
        Some(priced.cheapest(method, &mut || false).ok()?.1)
    }
}
