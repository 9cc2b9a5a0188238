//! Turns the model of an agent into code.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, spanned::Spanned as _};

use super::model::Agent;
use crate::{list, name};

/// The enums and the implementation.
pub(super) fn agent(agent: &Agent) -> TokenStream {
    let enums = enums(agent);
    let implementation = implementation(agent);
    let policy_test = policy_test(agent);
    quote! {
        #enums
        const _: () = {
            #implementation
        };
        #policy_test
    }
}

/// The enums and an implementation without tools, for a declaration that has problems.
pub(super) fn stub(agent: &Agent) -> TokenStream {
    let stub = Agent {
        root: agent.root.clone(),
        type_name: agent.type_name.clone(),
        generics: agent.generics.clone(),
        visibility: agent.visibility.clone(),
        name: quote!(""),
        model: quote!(""),
        instructions: quote!(""),
        tools: Vec::new(),
        variants: Vec::new(),
        policies: Vec::new(),
    };
    self::agent(&stub)
}

fn pending_name(agent: &Agent) -> Ident {
    let type_name = &agent.type_name;
    format_ident!("{type_name}Pending", span = type_name.span())
}

fn resume_name(agent: &Agent) -> Ident {
    let type_name = &agent.type_name;
    format_ident!("{type_name}Resume", span = type_name.span())
}

fn enums(agent: &Agent) -> TokenStream {
    let (root, visibility) = (&agent.root, &agent.visibility);
    let (pending, resume) = (pending_name(agent), resume_name(agent));
    let pending_doc = format!("The calls of `{}` that wait for a person.", agent.type_name);
    let resume_doc = format!(
        "Answers to questions of the tools of `{}`.",
        agent.type_name
    );
    let mut calls = TokenStream::new();
    let mut answers = TokenStream::new();
    for (variant, path, conditions) in agent.variants() {
        let call_doc = format!("A call of `{variant}`.");
        let answer_doc = format!("The answer to a question of `{variant}`.");
        let call = quote_spanned!(path.span()=> #root::__private::Pending<#path>);
        let answer = quote_spanned!(path.span()=> <#path as #root::__private::Tool>::Resume);
        calls.extend(quote!(#[doc = #call_doc] #(#conditions)* #variant(#call),));
        answers.extend(quote!(#[doc = #answer_doc] #(#conditions)* #variant(#answer),));
    }
    // Without the brackets, which are the macro's, the compiler would suggest to declare a tool
    // that it does not find as a type parameter of the struct.
    quote! {
        #[doc = #pending_doc]
        #[allow(clippy::large_enum_variant, dead_code, private_interfaces)]
        #[derive(::core::fmt::Debug)]
        #visibility enum #pending<> { #calls }

        #[doc = #resume_doc]
        #[allow(clippy::large_enum_variant, dead_code, private_interfaces)]
        #visibility enum #resume<> { #answers }
    }
}

fn implementation(agent: &Agent) -> TokenStream {
    let (root, type_name) = (&agent.root, &agent.type_name);
    let (pending, resume) = (pending_name(agent), resume_name(agent));
    let (name, model, instructions) = (&agent.name, &agent.model, &agent.instructions);
    let tools = list::vector(root, &agent.tools);
    let files = &agent.policies;
    let pending_set = pending_set(agent);
    let resume_set = resume_set(agent);

    let mut generics = agent.generics.clone();
    let parameters: Vec<Ident> = generics
        .type_params()
        .map(|parameter| parameter.ident.clone())
        .collect();
    let clause = generics.make_where_clause();
    for parameter in &parameters {
        let bound = quote!(#parameter: ::core::marker::Send + ::core::marker::Sync + 'static);
        clause
            .predicates
            .extend(syn::parse2::<syn::WherePredicate>(bound));
    }
    let (before, of_type, clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #before #root::__private::Agent for #type_name #of_type #clause {
            type Pending = #pending;
            type Resume = #resume;

            fn definition() -> #root::__private::AgentDefinition {
                #root::__private::AgentDefinition::new(#name, #model, #instructions)
                    .tools(#tools)
                    #(.policy(#files, ::core::include_str!(#files)))*
            }
        }
        #pending_set
        #resume_set
    }
}

fn pending_set(agent: &Agent) -> TokenStream {
    let root = &agent.root;
    let pending = pending_name(agent);
    let call = Ident::new("call", Span::mixed_site());
    let arms = agent.variants().map(|(variant, path, conditions)| {
        quote! {
            #(#conditions)*
            if #call.tool == <#path as #root::__private::Tool>::NAME {
                return #root::__private::Pending::<#path>::from_call(#call).map(Self::#variant);
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #root::__private::PendingSet for #pending {
            fn from_call(
                #call: #root::__private::PendingCall,
            ) -> ::core::result::Result<Self, #root::__private::PendingError> {
                #(#arms)*
                ::core::result::Result::Err(#root::__private::PendingError::unknown_tool(&#call))
            }
        }
    }
}

fn resume_set(agent: &Agent) -> TokenStream {
    let root = &agent.root;
    let resume = resume_name(agent);
    let tool = Ident::new("tool", Span::mixed_site());
    let answer = Ident::new("answer", Span::mixed_site());
    let name = &agent.name;
    let mut decode = TokenStream::new();
    let mut tools = TokenStream::new();
    let mut encode = TokenStream::new();
    for (variant, path, conditions) in agent.variants() {
        let tool_name = quote!(<#path as #root::__private::Tool>::NAME);
        decode.extend(quote! {
            #(#conditions)*
            if #tool == #tool_name {
                return #root::__private::decode_answer::<#path>(#answer).map(Self::#variant);
            }
        });
        tools.extend(quote!(#(#conditions)* Self::#variant(_) => #tool_name,));
        encode.extend(quote! {
            #(#conditions)*
            Self::#variant(#answer) => #root::__private::encode_answer(#answer),
        });
    }
    // A reference to an enum without variants has to be matched by its place.
    let matched = if agent.tools.is_empty() {
        quote!(*self)
    } else {
        quote!(self)
    };
    let matched_for_tool = &matched;
    let answer_pattern = if agent.tools.is_empty() {
        quote!(_)
    } else {
        quote!(#answer)
    };
    quote! {
        #[automatically_derived]
        impl ::core::fmt::Debug for #resume {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(#root::__private::ResumeSet::tool(self))
            }
        }

        #[automatically_derived]
        impl #root::__private::ResumeSet for #resume {
            fn decode(
                #tool: &::core::primitive::str,
                #answer_pattern: &#root::__private::serde_json::Value,
            ) -> ::core::result::Result<Self, #root::__private::ArgumentError> {
                #decode
                ::core::result::Result::Err(#root::__private::unknown_tool(#tool, #name))
            }

            #[allow(unreachable_patterns)]
            fn tool(&self) -> &::core::primitive::str {
                match #matched_for_tool { #tools }
            }

            #[allow(unreachable_patterns)]
            fn encode(
                &self,
            ) -> ::core::result::Result<
                #root::__private::Canonical,
                #root::__private::CanonicalError,
            > {
                match #matched { #encode }
            }
        }
    }
}

/// A test, named after the agent, that loads the policies against the schema of the tools.
fn policy_test(agent: &Agent) -> TokenStream {
    if agent.policies.is_empty() || !agent.generics.params.is_empty() {
        return TokenStream::new();
    }
    let (root, type_name) = (&agent.root, &agent.type_name);
    let test = format_ident!(
        "policies_of_{}",
        name::snake(&type_name.to_string()),
        span = type_name.span()
    );
    quote! {
        #[cfg(test)]
        #[allow(unnameable_test_items)]
        #[::core::prelude::v1::test]
        fn #test() -> ::core::result::Result<(), impl ::core::fmt::Debug> {
            <#type_name as #root::__private::Agent>::definition().check_policies()
        }
    }
}
