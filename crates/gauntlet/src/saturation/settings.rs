//! `Settings`: how the e-graph of a model is grown and searched.

use regraft_saturate::{Cycles, Limits, Mcts, Saturate, Schedule};

use crate::generate::random::Random;

/// Simulations of a tree search: a few.
const SIMULATIONS: usize = 4;
/// One model in so many is searched by simulations, too.
const SIMULATED: usize = 4;

/// How the e-graph of a model is grown and searched.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How far it grows.
    pub limits: Limits,
    /// How rules take turns.
    pub schedule: Schedule,
    /// What becomes of cycles.
    pub cycles: Cycles,
    /// The seed of a tree search, if there is one.
    pub simulated: Option<u64>,
}

impl Settings {
    /// Those of a random model.
    pub fn drawn(seed: u64, number: u64) -> Settings {
        let mut random = Random::new(!seed, number);
        let nodes = random.pick(&[60, 120, 250, 500, 1000]);
        Settings::with(nodes, &mut random)
    }

    /// Those of a network: room for what it has, and as much again.
    pub fn of_network(seed: u64, number: u64) -> Settings {
        Settings::with(1200, &mut Random::new(!seed, number))
    }

    fn with(nodes: usize, random: &mut Random) -> Settings {
        let limits = Limits {
            nodes,
            iterations: 1 + random.below(10),
            multi: random.below(4),
            piece: random.pick(&[4, 12]),
            choices: random.pick(&[4, 64]),
        };
        Settings {
            limits,
            schedule: if random.once_in(3) { Schedule::Backoff { matches: 10, pause: 2 } } else { Schedule::Simple },
            cycles: random.pick(&[Cycles::Kept, Cycles::Kept, Cycles::Vanilla, Cycles::Efficient]),
            simulated: random.once_in(SIMULATED).then(|| random.next()),
        }
    }

    /// The search by these settings.
    pub fn saturate(&self) -> Saturate {
        Saturate { limits: self.limits, schedule: self.schedule, cycles: self.cycles, polish: false, ..Saturate::default() }
    }

    /// The tree search by these settings, if there is one.
    pub fn mcts(&self) -> Option<Mcts> {
        let limits = Limits { nodes: self.limits.nodes.min(400), ..self.limits };
        self.simulated.map(|seed| Mcts { limits, simulations: SIMULATIONS, steps: 6, polish: false, seed, ..Mcts::default() })
    }
}
