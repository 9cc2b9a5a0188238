//! The model of a tool: everything that generation needs, and nothing that it would have to
//! examine.

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Ident, LitStr, Type, Visibility};

use crate::docs::Docs;

/// A tool.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a declaration of its own"
)]
pub(super) struct Tool {
    /// The path to `agentkit`.
    pub(super) root: TokenStream,
    /// The function.
    pub(super) function: Ident,
    /// How the function is called: its name, or the path of a method.
    pub(super) call: TokenStream,
    /// The type in whose name the tool is implemented.
    pub(super) type_name: Ident,
    /// The struct of the arguments.
    pub(super) args_name: Ident,
    pub(super) visibility: Visibility,
    /// `#[cfg]`s of the function: they hold for everything that is generated.
    pub(super) conditions: Vec<Attribute>,
    /// Attributes of the function that its type shares: `deprecated`, `doc(hidden)`.
    pub(super) shared: Vec<Attribute>,
    /// The name for models.
    pub(super) name: String,
    pub(super) docs: Docs,
    pub(super) is_async: bool,
    pub(super) parameters: Vec<Parameter>,
    pub(super) output: Output,
    pub(super) suspension: Option<Suspension>,
    pub(super) approval: Approval,
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) labels: Vec<LitStr>,
    pub(super) facts: Vec<Fact>,
}

/// Something that follows from the arguments: `facts(name = function)`.
#[derive(Clone)]
pub(super) struct Fact {
    pub(super) name: LitStr,
    /// A function or closure of the arguments.
    pub(super) derivation: TokenStream,
}

/// A parameter of the function.
pub(super) struct Parameter {
    /// `#[cfg]`s of the parameter.
    pub(super) conditions: Vec<Attribute>,
    pub(super) source: Source,
}

/// Where a parameter's value comes from.
pub(super) enum Source {
    /// From the model.
    Argument(Argument),
    /// From the application: the type, and whether it is borrowed.
    Context { ty: Type, borrowed: bool },
    /// The answer to the tool's question.
    Resume { span: Span },
}

/// An argument that the model sends.
pub(super) struct Argument {
    /// The parameter's name, which is the field's.
    pub(super) field: Ident,
    /// The type, without lifetimes that only the function knows.
    pub(super) ty: Type,
    /// Whether the function takes it by reference: the field holds the owned form.
    pub(super) borrowed: bool,
    /// `#[serde]`, `#[schemars]` and `#[cfg_attr]` attributes, forwarded to the field.
    pub(super) forwarded: Vec<Attribute>,
    pub(super) docs: Docs,
    /// `#[arg(rename = "…")]`.
    pub(super) rename: Option<String>,
    pub(super) default: ArgumentDefault,
}

/// What stands for an argument that is absent.
pub(super) enum ArgumentDefault {
    /// What the type says.
    None,
    /// `Default::default()`.
    Trait,
    /// An expression.
    Expression(TokenStream),
}

/// What the function returns.
pub(super) enum Output {
    /// A type that can be named anywhere.
    Named(Type),
    /// A type that only the function can name; spans are those of this type.
    Opaque(Type),
    /// Nothing.
    Unit,
}

/// The types of question and answer.
pub(super) struct Suspension {
    pub(super) suspend: Type,
    pub(super) resume: Type,
}

/// What the declaration says about approval.
#[derive(Clone)]
pub(super) struct Approval {
    pub(super) required: bool,
    /// A function or closure of the arguments.
    pub(super) when: Option<TokenStream>,
    pub(super) why: Option<String>,
    pub(super) quorum: u32,
    pub(super) ttl_seconds: Option<u64>,
}

impl Default for Approval {
    /// None is required.
    fn default() -> Self {
        Self {
            required: false,
            when: None,
            why: None,
            quorum: 1,
            ttl_seconds: None,
        }
    }
}
