//! The model of an agent.

use proc_macro2::TokenStream;
use syn::{Generics, Ident, LitStr, Path, Visibility};

use crate::list::ListedTool;

/// An agent.
pub(super) struct Agent {
    /// The path to `agentkit`.
    pub(super) root: TokenStream,
    pub(super) type_name: Ident,
    pub(super) generics: Generics,
    pub(super) visibility: Visibility,
    pub(super) name: TokenStream,
    pub(super) model: TokenStream,
    pub(super) instructions: TokenStream,
    pub(super) tools: Vec<ListedTool>,
    /// The variants of the generated enums, in the order of `tools`.
    pub(super) variants: Vec<Ident>,
    /// Paths of policy files, relative to the source file.
    pub(super) policies: Vec<LitStr>,
}

impl Agent {
    /// The tools with their variants.
    pub(super) fn variants(&self) -> impl Iterator<Item = (&Ident, &Path, &[syn::Attribute])> {
        self.variants
            .iter()
            .zip(&self.tools)
            .map(|(variant, tool)| (variant, &tool.path, tool.conditions.as_slice()))
    }
}
