//! Properties of an instance of a rule: which guards it satisfies.

use smallvec::SmallVec;

use crate::guard::{Guard, Guards};
use crate::reading::Reading;

/// Observations from typing the operators of an instance.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Some operands of elementwise operators had different shapes.
    pub broadcast: bool,
    /// For every elementwise operator and axis: 0 if both sizes are equal, 1 if the second is 1, 2
    /// if the first is.
    pub ways: Vec<u8>,
    /// Groups and output channels of each convolution.
    pub convolutions: SmallVec<[(i64, i64); 4]>,
    /// Some window had an even size.
    pub even_kernel: bool,
    /// Some constant kernel had several input channels; some had fewer input than output channels.
    pub constants: (bool, bool),
    /// Some `SAME` padding was divided differently by the readings.
    pub uneven_padding: bool,
    /// An average reached into padding.
    pub padded_average: bool,
}

impl Facts {
    /// The guards that hold under `reading`. Guards about features that do not occur hold.
    pub fn guards(&self, reading: Reading) -> Guards {
        let per_group = |(group, outputs): &(i64, i64)| outputs / (*group).max(1);
        Guard::ALL
            .into_iter()
            .filter(|guard| match guard {
                Guard::SameShape => !self.broadcast,
                Guard::EqualOutputsPerGroup => self.convolutions.windows(2).all(|w| per_group(&w[0]) == per_group(&w[1])),
                Guard::Ungrouped => self.convolutions.iter().all(|(group, _)| *group == 1),
                Guard::OddKernels => !self.even_kernel,
                Guard::SymmetricPadding => reading.symmetric || !self.uneven_padding,
                Guard::AveragesCountPadding => reading.averages_count_padding || !self.padded_average,
                Guard::DepthwiseConstants => !self.constants.0,
                Guard::DenseConstants => !self.constants.1,
            })
            .collect()
    }
}
