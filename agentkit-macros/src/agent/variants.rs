//! What the variants of the generated enums are called.

use quote::ToTokens as _;
use syn::{Ident, ext::IdentExt as _};

use crate::{list::ListedTool, name, problems::Problems};

/// The names that are taken already.
#[derive(Default)]
pub(super) struct Names(Vec<Ident>);

impl Names {
    /// The name of the variant for tools that are added at run time.
    pub(super) fn with_other(dynamic: bool) -> Self {
        let other = dynamic.then(|| Ident::new("Other", proc_macro2::Span::call_site()));
        Self(other.into_iter().collect())
    }

    /// Variants for tools, in their order.
    pub(super) fn of_tools(&mut self, tools: &[ListedTool], problems: &mut Problems) -> Vec<Ident> {
        let name = |last: &Ident| {
            let camel = name::camel(&last.unraw().to_string());
            // `self` and the like are no identifiers of their own, and no tools.
            syn::parse_str::<Ident>(&camel).map_or_else(
                |_| Ident::new("Tool", last.span()),
                |_| Ident::new(&camel, last.span()),
            )
        };
        self.variants(tools, name, problems)
    }

    /// Variants for sub-agents, in their order. Each has a second one for its tasks.
    pub(super) fn of_agents(
        &mut self,
        agents: &[ListedTool],
        problems: &mut Problems,
    ) -> Vec<Ident> {
        self.variants(agents, Ident::unraw, problems)
    }

    fn variants(
        &mut self,
        listed: &[ListedTool],
        name: impl Fn(&Ident) -> Ident,
        problems: &mut Problems,
    ) -> Vec<Ident> {
        let mut variants = Vec::new();
        for member in listed {
            let variant = match (&member.alias, member.path.segments.last()) {
                (Some(alias), _) => alias.clone(),
                (None, Some(last)) => name(&last.ident),
                (None, None) => continue,
            };
            if member.conditions.is_empty() && self.0.contains(&variant) {
                let path = member.path.to_token_stream().to_string().replace(' ', "");
                problems.add(
                    &member.path,
                    &format!("the agent has another variant `{variant}` already"),
                    &format!("give it another name with `{path} as AnotherName`"),
                );
            }
            self.0.push(variant.clone());
            variants.push(variant);
        }
        variants
    }
}

/// The variant for tasks that are to be handed to a sub-agent.
pub(super) fn task(variant: &Ident) -> Ident {
    quote::format_ident!("{variant}Task", span = variant.span())
}
