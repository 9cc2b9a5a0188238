//! The model of an agent.

use proc_macro2::TokenStream;
use syn::{Attribute, Generics, Ident, LitStr, Visibility};

use crate::{docs::Docs, list::ListedTool};

/// An agent.
pub(super) struct Agent {
    /// The path to `agentkit`.
    pub(super) root: TokenStream,
    pub(super) type_name: Ident,
    pub(super) generics: Generics,
    pub(super) visibility: Visibility,
    pub(super) docs: Docs,
    pub(super) name: TokenStream,
    pub(super) model: TokenStream,
    pub(super) instructions: TokenStream,
    pub(super) tools: Members,
    /// The agents to which it may hand tasks.
    pub(super) agents: Members,
    /// Whether tools may be added at run time.
    pub(super) dynamic: Dynamic,
    /// Statements that set what holds for all runs.
    pub(super) defaults: Vec<TokenStream>,
    /// Paths of policy files, relative to the source file.
    pub(super) policies: Vec<LitStr>,
}

/// Tools or sub-agents, with the variants that the generated enums have for them.
#[derive(Default)]
pub(super) struct Members {
    pub(super) listed: Vec<ListedTool>,
    /// In the order of `listed`.
    pub(super) variants: Vec<Ident>,
}

/// Whether tools may be added at run time.
#[derive(Default)]
pub(super) enum Dynamic {
    /// None.
    #[default]
    None,
    /// By the builder.
    Builder,
    /// Those of an expression, and by the builder.
    Expression(TokenStream),
}

impl Members {
    /// Each with its variant and its conditions.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Ident, &ListedTool, &[Attribute])> {
        self.variants
            .iter()
            .zip(&self.listed)
            .map(|(variant, member)| (variant, member, member.conditions.as_slice()))
    }
}

impl Dynamic {
    /// Whether there may be any.
    pub(super) const fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }
}
