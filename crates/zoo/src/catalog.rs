//! The list of networks, and building one by name.

use std::fmt;

use regraft_onnx::proto::{ModelProto, tensor_proto::DataType};

use crate::{
    builder::{Builder, Value},
    error::ZooError,
    networks::{self, Outputs},
    options::{Options, Weights},
    paper,
};

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// 32-bit floating point.
    F32,
    /// 64-bit signed integer.
    I64,
    /// Truth value.
    Bool,
}

impl Element {
    /// ONNX's number for this type.
    pub(crate) fn code(self) -> i32 {
        let code = match self {
            Self::F32 => DataType::Float,
            Self::I64 => DataType::Int64,
            Self::Bool => DataType::Bool,
        };
        code as i32
    }
}

/// One input of a network.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Input {
    /// Name of the graph input.
    pub name: &'static str,
    /// Type of its elements.
    pub element: Element,
    /// Its default dimensions. The first is the batch, if the network has one.
    pub dims: &'static [i64],
    /// For integers: values must be at least 0 and less than this.
    pub below: Option<i64>,
}

/// One network of the zoo.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Entry {
    /// Unique name. Published variants begin with `paper-`.
    pub name: &'static str,
    /// A one-line description of the network; for a published variant including its peculiarities.
    pub summary: &'static str,
    /// Where its definition comes from.
    pub source: &'static str,
    /// Its inputs in order.
    pub inputs: &'static [Input],
    /// Whether it can be built with a symbolic batch.
    pub dynamic: bool,
    /// Whether it can be built with symbolic sizes of its image or recording: it takes all but the
    /// smallest.
    pub convolutional: bool,
    /// Whether its weights exceed what one file holds: it has none but outlines
    /// ([`Weights::Outlines`]) and zeros.
    pub outlined: bool,
    network: fn(&mut Builder, &[Value]) -> Outputs,
}

impl Entry {
    /// Whether this is a graph published with a paper, not the real architecture.
    pub fn is_paper_variant(&self) -> bool {
        self.name.starts_with("paper-")
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All networks of the zoo: first the real architectures, then the published variants.
pub fn list() -> &'static [Entry] {
    ENTRIES
}

/// Builds the network called `name`.
///
/// # Errors
///
/// If there is no such entry, if symbolic sizes are requested of a network without a batch
/// dimension, or made for one size of images, or if random weights are requested of one whose
/// weights do not fit into a file.
pub fn build(name: &str, options: &Options) -> Result<ModelProto, ZooError> {
    let Some(entry) = ENTRIES.iter().find(|entry| entry.name == name) else {
        return Err(ZooError::Unknown { name: name.to_owned(), nearest: nearest(name) });
    };
    if options.dynamic_batch && !entry.dynamic {
        return Err(ZooError::NoDynamicBatch { name: entry.name });
    }
    if options.dynamic_field && !entry.convolutional {
        return Err(ZooError::NoDynamicField { name: entry.name });
    }
    if entry.outlined && options.weights == Weights::Random {
        return Err(ZooError::TooLarge { name: entry.name });
    }
    let mut builder = Builder::new(*options);
    let inputs: Vec<_> = entry.inputs.iter().map(|input| builder.input(input)).collect();
    let outputs = (entry.network)(&mut builder, &inputs);
    Ok(builder.finish(entry, &inputs, outputs))
}

/// The entry whose name shares the most adjacent letter pairs with `name`; the first one in case of
/// a tie.
fn nearest(name: &str) -> &'static str {
    let pairs = |name: &str| name.to_lowercase().as_bytes().windows(2).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let asked = pairs(name);
    let likeness = |entry: &Entry| {
        let own = pairs(entry.name);
        let shared = own.iter().filter(|pair| asked.contains(pair)).count();
        2 * shared as i64 * 100 / (own.len() + asked.len()).max(1) as i64
    };
    ENTRIES.iter().rev().max_by_key(|entry| likeness(entry)).map_or("", |entry| entry.name)
}

/// A floating-point input.
const fn floats(name: &'static str, dims: &'static [i64]) -> Input {
    Input { name, element: Element::F32, dims, below: None }
}

/// An input of integers from 0 up to, but not including, `below`.
const fn ids(name: &'static str, dims: &'static [i64], below: i64) -> Input {
    Input { name, element: Element::I64, dims, below: Some(below) }
}

const IMAGE_224: &[Input] = &[floats("image", &[1, 3, 224, 224])];
const IMAGE_299: &[Input] = &[floats("image", &[1, 3, 299, 299])];

const TASO: &str = "TASO (SOSP 2019), example networks";
const TENSAT: &str = "TENSAT (MLSys 2021), benchmark networks";
const PACT: &str = "EqSat with MCTS (PACT 2024), which names the sizes; layers as released with X-RLflow";
const XRLFLOW: &str = "X-RLflow (MLSys 2023), released graph definitions";
const OCGGS: &str = "OCGGS (PVLDB 13(11), 2020), section on experiments";

const ENTRIES: &[Entry] = &[
    Entry {
        name: "squeezenet-1.1",
        summary: "SqueezeNet 1.1 image classifier.",
        source: "Iandola et al. 2016, release 1.1",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::squeezenet::build,
    },
    Entry {
        name: "resnet-18",
        summary: "ResNet-18 image classifier.",
        source: "He et al. 2015, table 1",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::resnet::resnet18,
    },
    Entry {
        name: "resnet-50",
        summary: "ResNet-50 image classifier, stride in the 3x3 convolutions.",
        source: "He et al. 2015, table 1, with the stride of version 1.5",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::resnet::resnet50,
    },
    Entry {
        name: "resnext-50",
        summary: "ResNeXt-50 (32x4d) image classifier with group convolutions.",
        source: "Xie et al. 2016, table 1 and figure 3(c)",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::resnext::grouped,
    },
    Entry {
        name: "resnext-50-branches",
        summary: "ResNeXt-50 (32x4d) with 32 explicit branches per block; equal to resnext-50 for the same seed.",
        source: "Xie et al. 2016, table 1 and figure 3(b)",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::resnext::branches,
    },
    Entry {
        name: "inception-v3",
        summary: "Inception-v3 image classifier without the auxiliary one; its means count border zeros.",
        source: "Szegedy et al. 2015, table 1, in the form of torchvision",
        inputs: IMAGE_299,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::inception::build,
    },
    Entry {
        name: "mobilenet-v2",
        summary: "MobileNet-v2 image classifier, width 1.0, ReLU6 as Clip.",
        source: "Sandler et al. 2018, table 2",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::mobilenet_v2::build,
    },
    Entry {
        name: "mobilenet-v3-large",
        summary: "MobileNet-v3-large image classifier, hard-swish and hard-sigmoid in primitive operators.",
        source: "Howard et al. 2019, table 1",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::mobilenet_v3::build,
    },
    Entry {
        name: "nasnet-a",
        summary: "NASNet-A (4 @ 1056) image classifier, the mobile network.",
        source: "Zoph et al. 2017, figure 4 and appendix",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::nasnet::build,
    },
    Entry {
        name: "vgg-19",
        summary: "VGG-19 image classifier.",
        source: "Simonyan and Zisserman 2014, table 1, column E",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::vgg::build,
    },
    Entry {
        name: "alexnet",
        summary: "AlexNet image classifier with two groups and local response normalization.",
        source: "Krizhevsky et al. 2012, section 3",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::alexnet::build,
    },
    Entry {
        name: "nasrnn",
        summary: "Searched recurrent cell with shared weights, width 512, unrolled for 10 steps.",
        source: "Zoph and Le 2016, appendix, in the form of TensorFlow's NASCell",
        inputs: &[floats("sequence", &[1, 10, 512]), floats("initial_state", &[1, 512]), floats("initial_memory", &[1, 512])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::nasrnn::build,
    },
    Entry {
        name: "sru",
        summary: "One layer of simple recurrent units, width 1024, unrolled for 20 steps.",
        source: "Lei et al. 2018, equations 1 to 4",
        inputs: &[floats("sequence", &[1, 20, 1024]), floats("initial_memory", &[1, 1024])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::sru::build,
    },
    Entry {
        name: "bert-base",
        summary: "BERT-base encoder with embeddings and pooler, sequence 128, primitive layer norms and GELUs.",
        source: "Devlin et al. 2018, section 3",
        inputs: &[ids("input_ids", &[1, 128], 30522), ids("attention_mask", &[1, 128], 2), ids("token_type_ids", &[1, 128], 2)],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::bert::build,
    },
    Entry {
        name: "vit-base",
        summary: "ViT-base image classifier with patches of 16x16 pixels, primitive layer norms and GELUs.",
        source: "Dosovitskiy et al. 2020, table 1",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::vit::base,
    },
    Entry {
        name: "vit-large",
        summary: "ViT-large image classifier with patches of 16x16 pixels, primitive layer norms and GELUs.",
        source: "Dosovitskiy et al. 2020, table 1",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::vit::large,
    },
    Entry {
        name: "vit-huge",
        summary: "ViT-huge image classifier with patches of 14x14 pixels, primitive layer norms and GELUs.",
        source: "Dosovitskiy et al. 2020, table 1",
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: true,
        network: networks::vit::huge,
    },
    Entry {
        name: "gpt2-block",
        summary: "One block of GPT-2 small, sequence 128, causal mask, tanh GELU in primitive operators.",
        source: "Radford et al. 2019, section 2.3",
        inputs: &[floats("hidden_states", &[1, 128, 768])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::gpt2::build,
    },
    Entry {
        name: "m18",
        summary: "M18 classifier of raw audio, four seconds at 8 kHz.",
        source: "Dai et al. 2016, table 1",
        inputs: &[floats("waveform", &[1, 1, 32000])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: networks::m18::build,
    },
    Entry {
        name: "bert-large-layers",
        summary: "Two layers of BERT-large, sequence 384, primitive layer norms and GELUs.",
        source: "Devlin et al. 2018, section 3",
        inputs: &[floats("hidden_states", &[1, 384, 1024]), ids("attention_mask", &[1, 384], 2)],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::bert::large_layers,
    },
    Entry {
        name: "vdcnn-29",
        summary: "VDCNN-29 classifier of texts by their characters, without shortcuts.",
        source: "Conneau et al. 2017, section 3 and table 2",
        inputs: &[ids("characters", &[1, 1024], 69)],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::vdcnn::build,
    },
    Entry {
        name: "sample-cnn",
        summary: "SampleCNN tagger of raw audio, 59049 samples, convolutions of three taps.",
        source: "Lee et al. 2017, table 1",
        inputs: &[floats("waveform", &[1, 1, 59049])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::sample_cnn::build,
    },
    Entry {
        name: "char-cnn",
        summary: "Character-level convolutional classifier of texts, the smaller one, 1014 characters of 70.",
        source: "Zhang et al. 2015, tables 1 and 2",
        inputs: &[floats("characters", &[1, 70, 1014])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::char_cnn::build,
    },
    Entry {
        name: "nsnet2",
        summary: "NSNet2 suppressor of noise in speech, one second in frames of 10 ms, two layers of gated recurrent units.",
        source: "Braun and Tashev 2020, section 3, the baseline of the deep noise suppression challenge",
        inputs: &[floats("log_spectrum", &[1, 100, 161])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::nsnet2::build,
    },
    Entry {
        name: "crnn",
        summary: "CRNN reader of a line of text, 32 x 100 pixels, two layers of long short-term memory in both directions.",
        source: "Shi et al. 2015, table 1",
        inputs: &[floats("image", &[1, 1, 32, 100])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::crnn::build,
    },
    Entry {
        name: "diffusion-block",
        summary: "One transformer block of Stable Diffusion's denoiser, 64 x 64 latent positions and 77 of a text.",
        source: "Rombach et al. 2022, section 3.3 and appendix E.2.1; version 1",
        inputs: &[floats("hidden_states", &[1, 4096, 320]), floats("encoder_hidden_states", &[1, 77, 768])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: networks::diffusion::build,
    },
    Entry {
        name: "paper-bert",
        summary: "Eight layers of dead attention: each linear layer reads the layer's input, keys are not transposed, \
                  and there is no softmax, scale, bias, norm or feed-forward part.",
        source: TASO,
        inputs: &[floats("x", &[64, 1024])],
        dynamic: false,
        convolutional: false,
        outlined: false,
        network: paper::attention::bert,
    },
    Entry {
        name: "paper-nasrnn",
        summary: "Five steps of eight gates; unlike a recurrent network, every step has 16 weights of its own.",
        source: TASO,
        inputs: &[
            floats("x0", &[1, 512]),
            floats("x1", &[1, 512]),
            floats("x2", &[1, 512]),
            floats("x3", &[1, 512]),
            floats("x4", &[1, 512]),
        ],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::nasrnn::build,
    },
    Entry {
        name: "paper-nasnet-a",
        summary: "Three stages of simplified NasNet-A cells: separable convolutions once, no norms, equal pools twice.",
        source: TASO,
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::nasnet::build,
    },
    Entry {
        name: "paper-resnet-50",
        summary: "ResNet-50 without stem, norms and classifier; projected shortcuts have a ReLU of their own.",
        source: TENSAT,
        inputs: &[floats("x", &[1, 64, 56, 56])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::resnet::resnet50,
    },
    Entry {
        name: "paper-resnext-50",
        summary: "ResNeXt-50 (32x4d) without norms and classifier; projected shortcuts have a ReLU of their own.",
        source: TENSAT,
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::resnet::resnext50,
    },
    Entry {
        name: "paper-inception-v3",
        summary: "Inception-v3 without norms and classifier, binary concatenations, average and max pools swapped.",
        source: TENSAT,
        inputs: IMAGE_299,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::inception::inception_v3,
    },
    Entry {
        name: "paper-mobilenet-v2",
        summary: "MobileNet-v2 with ReLU for ReLU6, one idle expansion, and one stride a stage late.",
        source: TENSAT,
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::mobilenet::build,
    },
    Entry {
        name: "paper-squeezenet",
        summary: "SqueezeNet 1.1 without biases and softmax.",
        source: TENSAT,
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::squeezenet::build,
    },
    Entry {
        name: "paper-vgg-19",
        summary: "VGG-19 without biases and softmax, each dense weight transposed in the graph.",
        source: TENSAT,
        inputs: IMAGE_224,
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::vgg::build,
    },
    Entry {
        name: "paper-vit-base",
        summary: "Twelve layers without softmax, norms, biases or activation; keys are not transposed.",
        source: XRLFLOW,
        inputs: &[floats("x", &[64, 768])],
        dynamic: false,
        convolutional: false,
        outlined: false,
        network: paper::attention::vit_base,
    },
    Entry {
        name: "paper-vit-large",
        summary: "Twenty-four layers like those of paper-vit-base, of width 1024.",
        source: PACT,
        inputs: &[floats("x", &[64, 1024])],
        dynamic: false,
        convolutional: false,
        outlined: false,
        network: paper::attention::vit_large,
    },
    Entry {
        name: "paper-vit-huge",
        summary: "Thirty-two layers like those of paper-vit-base, of width 1280; 80 tokens, as many as a head is wide.",
        source: PACT,
        inputs: &[floats("x", &[80, 1280])],
        dynamic: false,
        convolutional: false,
        outlined: true,
        network: paper::attention::vit_huge,
    },
    Entry {
        name: "paper-dall-e",
        summary: "Eight layers of DALL-E mini's text encoder, without softmax, scale, norms, biases or mask; gated perceptrons.",
        source: XRLFLOW,
        inputs: &[floats("x", &[16, 768])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::attention::dall_e,
    },
    Entry {
        name: "paper-t-t",
        summary: "Transformer-Transducer, 12 audio and 2 label layers, without softmax, scale, norms or biases.",
        source: XRLFLOW,
        inputs: &[floats("x", &[80, 512])],
        dynamic: false,
        convolutional: false,
        outlined: false,
        network: paper::attention::transducer,
    },
    Entry {
        name: "paper-resnet-n2",
        summary: "Two residual blocks of 256 channels, each shortcut projected and with a ReLU.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 256, 14, 14])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::resnet::blocks::<2>,
    },
    Entry {
        name: "paper-resnet-n4",
        summary: "Four residual blocks of 256 channels, each shortcut projected and with a ReLU.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 256, 14, 14])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::resnet::blocks::<4>,
    },
    Entry {
        name: "paper-resnet-n6",
        summary: "Six residual blocks of 256 channels, each shortcut projected and with a ReLU.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 256, 14, 14])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::resnet::blocks::<6>,
    },
    Entry {
        name: "paper-resnet-n8",
        summary: "Eight residual blocks of 256 channels, each shortcut projected and with a ReLU.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 256, 14, 14])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::resnet::blocks::<8>,
    },
    Entry {
        name: "paper-inception-e-n1",
        summary: "One Inception-v3 block of the last stage, with a max pool.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 1280, 8, 8])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::inception::blocks_e::<1>,
    },
    Entry {
        name: "paper-inception-e-n2",
        summary: "Two Inception-v3 blocks of the last stage, with max pools.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 1280, 8, 8])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::inception::blocks_e::<2>,
    },
    Entry {
        name: "paper-inception-e-n3",
        summary: "Three Inception-v3 blocks of the last stage, with max pools.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 1280, 8, 8])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::inception::blocks_e::<3>,
    },
    Entry {
        name: "paper-inception-e-n4",
        summary: "Four Inception-v3 blocks of the last stage, with max pools.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 1280, 8, 8])],
        dynamic: true,
        convolutional: true,
        outlined: false,
        network: paper::inception::blocks_e::<4>,
    },
    Entry {
        name: "paper-sru",
        summary: "One SRU step of eleven operators, width 1024, without the complements of its gates.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 1024]), floats("memory", &[1, 1024])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::sru::build::<1>,
    },
    Entry {
        name: "paper-sru-20",
        summary: "Twenty SRU steps of eleven operators, width 1024, without the complements of their gates.",
        source: OCGGS,
        inputs: &[floats("x", &[1, 1024]), floats("memory", &[1, 1024])],
        dynamic: true,
        convolutional: false,
        outlined: false,
        network: paper::sru::build::<20>,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let error = build("resnet50", &Options::default()).unwrap_err();
        assert_eq!(error, ZooError::Unknown { name: "resnet50".to_owned(), nearest: "resnet-50" });
    }

    #[test]
    fn a_network_without_batch_says_so() {
        let options = Options { dynamic_batch: true, ..Options::default() };
        let error = build("paper-bert", &options).unwrap_err();
        assert_eq!(error, ZooError::NoDynamicBatch { name: "paper-bert" });
    }
}
