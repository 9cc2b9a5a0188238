//! Turns the model of an agent into code.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{Ident, spanned::Spanned as _};

use super::{
    model::{Agent, Dynamic, Members},
    variants,
};
use crate::{docs::Docs, list, located, name};

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
        docs: Docs::default(),
        tools: Members::default(),
        agents: Members::default(),
        dynamic: Dynamic::None,
        defaults: Vec::new(),
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
    for (variant, tool, conditions) in agent.tools.iter() {
        let call_doc = format!("A call of `{variant}`.");
        let answer_doc = format!("The answer to a question of `{variant}`.");
        let call = tool.of_tool(root, &quote!(Pending));
        let answer = tool.of_tool(root, &quote!(Resume));
        calls.extend(quote!(#[doc = #call_doc] #(#conditions)* #variant(#call),));
        answers.extend(quote!(#[doc = #answer_doc] #(#conditions)* #variant(#answer),));
    }
    for (variant, below, conditions) in agent.agents.iter() {
        let task = variants::task(variant);
        let task_doc = format!("A task that is to be handed to `{variant}`.");
        let call_doc = format!("A call that waits in a run of `{variant}`, or below it.");
        let answer_doc =
            format!("The answer to a question that was asked in a run of `{variant}`.");
        let call = below.of_agent(root, &quote!(Pending));
        let answer = below.of_agent(root, &quote!(Resume));
        calls.extend(quote! {
            #[doc = #task_doc] #(#conditions)* #task(#root::__private::TaskApproval),
            #[doc = #call_doc] #(#conditions)* #variant(#call),
        });
        answers.extend(quote!(#[doc = #answer_doc] #(#conditions)* #variant(#answer),));
    }
    if agent.dynamic.is_some() {
        calls.extend(quote! {
            /// A call of a tool that was added at run time, or is not there any more.
            Other(#root::__private::PendingCall),
        });
        answers.extend(quote! {
            /// The answer to a question of a tool that was added at run time.
            Other(#root::__private::OtherAnswer),
        });
    }
    // Without the brackets, which are the macro's, the compiler would suggest to declare a tool
    // that it does not find as a type parameter of the struct.
    quote! {
        #[doc = #pending_doc]
        #[allow(clippy::large_enum_variant, dead_code, private_interfaces)]
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
    let definition = &Ident::new("definition", Span::mixed_site());
    let tools = list::vector(root, &agent.tools.listed);
    let files = &agent.policies;
    let description = (!agent.docs.is_empty()).then(|| {
        let docs = agent.docs.expression(root);
        quote!(.description(#docs))
    });
    let more = match &agent.dynamic {
        Dynamic::Expression(tools) => Some(quote!(.tools(#tools))),
        Dynamic::None | Dynamic::Builder => None,
    };
    let below = agent.agents.iter().map(|(_, below, conditions)| {
        let below = below.of_agent(root, &quote!(definition()));
        quote!(#(#conditions)* let #definition = #definition.agent(#below);)
    });
    let all_below = agents_below(agent);
    // The constant of a generic type is evaluated where the type is used, if at all.
    let measured = (all_below.is_some() && agent.generics.params.is_empty()).then(|| {
        quote!(const _: ::core::primitive::usize =
            <#type_name as #root::__private::Agent>::AGENTS_BELOW;)
    });
    let defaults = defaults(agent);
    let span = agent.type_name.span().resolved_at(Span::call_site());
    let source = quote_spanned!(span=>
        #root::__private::SourceLocation {
            file: ::core::file!(),
            line: ::core::line!(),
            column: ::core::column!(),
        }
    );
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
    let dynamic = agent.dynamic.is_some().then(|| {
        quote! {
            #[automatically_derived]
            impl #before #root::__private::DynamicTools for #type_name #of_type #clause {}
        }
    });
    quote! {
        // Where another type is no agent, that this one is does not help.
        #[diagnostic::do_not_recommend]
        #[automatically_derived]
        impl #before #root::__private::Agent for #type_name #of_type #clause {
            type Pending = #pending;
            type Resume = #resume;

            fn definition() -> #root::__private::AgentDefinition {
                let #definition =
                    #root::__private::AgentDefinition::new(#name, #model, #instructions)
                        #description
                        .source(#source)
                        .tools(#tools)
                        #more
                        #(.policy(#files, ::core::include_str!(#files)))*
                        #defaults;
                #(#below)*
                #definition
            }

            fn name() -> #root::__private::String {
                #root::__private::agent_name(#name)
            }

            #all_below
        }
        #measured
        #dynamic
        #pending_set
        #resume_set
    }
}

/// The constant `AGENTS_BELOW`, where there are any. It has no value if an agent is below itself,
/// and the compiler says so at each agent of the circle and at the entry that leads to the next.
fn agents_below(agent: &Agent) -> Option<TokenStream> {
    if agent.agents.listed.is_empty() {
        return None;
    }
    let root = &agent.root;
    let span = agent.type_name.span();
    let below = agent.agents.iter().map(|(_, below, conditions)| {
        let path_span = below.path.span();
        let below = below.of_agent(root, &quote!(AGENTS_BELOW));
        let one = quote_spanned!(path_span=> 1 + #below);
        quote!(#(#conditions)* { #one },)
    });
    Some(quote_spanned!(span=>
        const AGENTS_BELOW: ::core::primitive::usize =
            #root::__private::sum(&[#(#below)*]);
    ))
}

/// A call that sets the defaults of runs, if there are any.
fn defaults(agent: &Agent) -> Option<TokenStream> {
    if agent.defaults.is_empty() {
        return None;
    }
    let root = &agent.root;
    let defaults = Ident::new("defaults", Span::mixed_site());
    let settings = &agent.defaults;
    Some(quote! {
        .defaults({
            let mut #defaults: #root::__private::Defaults = ::core::default::Default::default();
            #(#settings)*
            #defaults
        })
    })
}

fn pending_set(agent: &Agent) -> TokenStream {
    let root = &agent.root;
    let pending = pending_name(agent);
    let call = Ident::new("call", Span::mixed_site());
    // All of an arm stands where its entry is written: see `ListedTool::of_tool`.
    let agents = agent.agents.iter().map(|(variant, below, conditions)| {
        let span = below.path.span();
        let here = located::as_written(root, span);
        let task = at(span, &variants::task(variant));
        let set = below.of_agent(root, &quote!(Pending));
        let name = below.of_agent(root, &quote!(name()));
        let held = held(span);
        let typed = constructed(span, variant, &held.to_token_stream());
        let below = quote_spanned!(span=>
            if let ::core::option::Option::Some(#held) =
                #here::__private::pending_below::<#set>(&#name, &#call)
            {
                return #typed;
            }
        );
        let task = quote_spanned!(span=>
            if let ::core::option::Option::Some(#held) =
                #here::__private::pending_task(&#name, &#call)
            {
                return #held.map(Self::#task);
            }
        );
        quote!(#(#conditions)* #below #(#conditions)* #task)
    });
    let tools = agent.tools.iter().map(|(variant, tool, conditions)| {
        let span = tool.path.span();
        let name = tool.of_tool(root, &quote!(NAME));
        let typed = tool.of_tool(root, &quote!(typed));
        let typed = constructed(span, variant, &quote_spanned!(span=> #typed(#call)));
        let arm = quote_spanned!(span=> if #call.tool == #name { return #typed; });
        quote!(#(#conditions)* #arm)
    });
    let rest = if agent.dynamic.is_some() {
        quote!(#root::__private::pending_other(#call).map(Self::Other))
    } else {
        quote!(::core::result::Result::Err(#root::__private::PendingError::unknown_tool(&#call)))
    };
    let debug = debug(agent);
    quote! {
        #[automatically_derived]
        impl #root::__private::PendingSet for #pending {
            fn from_call(
                #call: #root::__private::PendingCall,
            ) -> ::core::result::Result<Self, #root::__private::PendingError> {
                #(#agents)*
                #(#tools)*
                #rest
            }
        }

        #debug
    }
}

/// The name at `span`.
fn at(span: Span, name: &Ident) -> Ident {
    Ident::new(&name.to_string(), span)
}

/// A local of an arm. It has no hygiene, so that errors at it are those of the entry.
fn held(span: Span) -> Ident {
    Ident::new("__agentkit_held", span)
}

/// What `result` holds, in a variant. Not by `Result::map`: it would demand, where an entry of the
/// list is wrong, in its own words what was demanded already.
fn constructed(span: Span, variant: &Ident, result: &TokenStream) -> TokenStream {
    let (held, variant) = (held(span), at(span, variant));
    quote_spanned!(span=>
        match #result {
            ::core::result::Result::Ok(#held) => ::core::result::Result::Ok(Self::#variant(#held)),
            ::core::result::Result::Err(#held) => ::core::result::Result::Err(#held),
        }
    )
}

/// By hand: a derive would say once more what is wrong with an entry of a list.
fn debug(agent: &Agent) -> TokenStream {
    let root = &agent.root;
    let pending = pending_name(agent);
    let f = Ident::new("f", Span::mixed_site());
    let mut arms = TokenStream::new();
    for (variant, tool, conditions) in agent.tools.iter() {
        let span = tool.path.span();
        let (held, text) = (held(span), variant.to_string());
        let variant = at(span, variant);
        let show = tool.of_tool(root, &quote!(show));
        let arm = quote_spanned!(span=> Self::#variant(ref #held) => #show(#held, #text, #f),);
        arms.extend(quote!(#(#conditions)* #arm));
    }
    let mut plain = |span: Span, variant: &Ident, conditions: &[syn::Attribute]| {
        let (held, text) = (held(span), variant.to_string());
        let (variant, here) = (at(span, variant), located::as_written(root, span));
        let arm = quote_spanned!(span=>
            Self::#variant(ref #held) => #here::__private::show(#held, #text, #f),
        );
        arms.extend(quote!(#(#conditions)* #arm));
    };
    for (variant, below, conditions) in agent.agents.iter() {
        let span = below.path.span();
        plain(span, &variants::task(variant), conditions);
        plain(span, variant, conditions);
    }
    if agent.dynamic.is_some() {
        let other = Ident::new("Other", Span::call_site());
        plain(Span::call_site(), &other, &[]);
    }
    // Matched by its place, as an enum without variants has to be.
    quote! {
        #[automatically_derived]
        impl ::core::fmt::Debug for #pending {
            #[allow(unused_variables)]
            fn fmt(&self, #f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match *self { #arms }
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
    for (variant, listed, conditions) in agent.tools.iter() {
        let span = listed.path.span();
        let (held, here) = (held(span), at(span, variant));
        let tool_name = listed.of_tool(root, &quote!(NAME));
        let typed = listed.of_tool(root, &quote!(answer));
        let typed = constructed(span, variant, &quote_spanned!(span=> #typed(#answer)));
        let text = listed.of_tool(root, &quote!(encode));
        let arm = quote_spanned!(span=> if #tool == #tool_name { return #typed; });
        decode.extend(quote!(#(#conditions)* #arm));
        let arm = quote_spanned!(span=> Self::#here(_) => #tool_name,);
        tools.extend(quote!(#(#conditions)* #arm));
        let arm = quote_spanned!(span=> Self::#here(ref #held) => #text(#held),);
        encode.extend(quote!(#(#conditions)* #arm));
    }
    for (variant, below, conditions) in agent.agents.iter() {
        let span = below.path.span();
        let (held, variant) = (held(span), at(span, variant));
        let here = located::as_written(root, span);
        let arm = quote_spanned!(span=>
            Self::#variant(ref #held) => #here::__private::ResumeSet::tool(#held),
        );
        tools.extend(quote!(#(#conditions)* #arm));
        let arm = quote_spanned!(span=>
            Self::#variant(ref #held) => #here::__private::ResumeSet::encode(#held),
        );
        encode.extend(quote!(#(#conditions)* #arm));
        // Where the entry is no agent this function has the error of the entry, and none of its own
        // about what it returns.
        let name = below.of_agent(root, &quote!(name));
        decode.extend(quote!(#(#conditions)* let _ = #name;));
    }
    let rest = if agent.dynamic.is_some() {
        tools.extend(quote!(Self::Other(ref #answer) => &#answer.tool,));
        encode.extend(quote! {
            Self::Other(ref #answer) => #root::__private::encode_answer(&#answer.answer),
        });
        quote! {
            ::core::result::Result::Ok(Self::Other(
                #root::__private::other_answer(#tool, #answer),
            ))
        }
    } else {
        quote!(::core::result::Result::Err(#root::__private::unknown_tool(#tool, #name)))
    };
    let decode_for = decode_for(agent);
    // Matched by its place, as an enum without variants has to be.
    quote! {
        #[automatically_derived]
        impl ::core::fmt::Debug for #resume {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(#root::__private::ResumeSet::tool(self))
            }
        }

        #[automatically_derived]
        impl #root::__private::ResumeSet for #resume {
            #[allow(unused_variables)]
            fn decode(
                #tool: &::core::primitive::str,
                #answer: &#root::__private::serde_json::Value,
            ) -> ::core::result::Result<Self, #root::__private::ArgumentError> {
                #decode
                #rest
            }

            #decode_for

            #[allow(unreachable_patterns)]
            fn tool(&self) -> &::core::primitive::str {
                match *self { #tools }
            }

            #[allow(unreachable_patterns)]
            fn encode(
                &self,
            ) -> ::core::result::Result<
                #root::__private::Canonical,
                #root::__private::CanonicalError,
            > {
                match *self { #encode }
            }
        }
    }
}

/// Where there are sub-agents, the answer to a question that one of them asked.
fn decode_for(agent: &Agent) -> Option<TokenStream> {
    if agent.agents.listed.is_empty() {
        return None;
    }
    let root = &agent.root;
    let call = Ident::new("call", Span::mixed_site());
    let answer = Ident::new("answer", Span::mixed_site());
    let name = &agent.name;
    let agents = agent.agents.iter().map(|(variant, below, conditions)| {
        let span = below.path.span();
        let here = located::as_written(root, span);
        let set = below.of_agent(root, &quote!(Resume));
        let name = below.of_agent(root, &quote!(name()));
        let held = held(span);
        let typed = constructed(span, variant, &held.to_token_stream());
        let arm = quote_spanned!(span=>
            if let ::core::option::Option::Some(#held) =
                #here::__private::answer_below::<#set>(&#name, #call, #answer)
            {
                return #typed;
            }
        );
        quote!(#(#conditions)* #arm)
    });
    Some(quote! {
        fn decode_for(
            #call: &#root::__private::PendingCall,
            #answer: &#root::__private::serde_json::Value,
        ) -> ::core::result::Result<Self, #root::__private::ArgumentError> {
            #(#agents)*
            if #call.is_delegated() {
                return ::core::result::Result::Err(
                    #root::__private::unknown_tool(&#call.tool, #name),
                );
            }
            Self::decode(&#call.tool, #answer)
        }
    })
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
