//! Turns the model into code.
//!
//! Local names have the hygiene of `macro_rules!` (mixed site), so that no argument can shadow
//! them; everything else is an absolute path.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{FnArg, Ident, Type, ext::IdentExt as _, spanned::Spanned as _};

use super::{
    model::{Argument, ArgumentDefault, Fact, Output, Parameter, Source, Tool},
    parameters::is_ours,
    parse::Item,
    types,
};
use crate::located;

/// The function as it was written, without the attributes that only this macro knows.
pub(super) fn function(item: &Item) -> TokenStream {
    let mut signature = item.signature.clone();
    for input in &mut signature.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !is_ours(attribute));
        }
    }
    let attributes = &item.attributes;
    let (visibility, body) = (&item.visibility, &item.body);
    quote!(#(#attributes)* #visibility #signature #body)
}

/// A type that stands for the tool although its declaration has problems, so that those who use
/// it see no further errors.
pub(super) fn stub(tool: &Tool) -> TokenStream {
    let root = &tool.root;
    let (type_name, conditions) = (&tool.type_name, &tool.conditions);
    let never = types::never(root);
    let declaration = declaration(tool);
    let name = &tool.name;
    quote! {
        #declaration
        #(#conditions)*
        const _: () = {
            impl #root::__private::Tool for #type_name {
                const NAME: &'static ::core::primitive::str = #name;
                type Args = #never;
                type Output = #never;
                type Suspend = #never;
                type Resume = #never;
                fn spec() -> #root::__private::ToolSpec {
                    #root::__private::stub(#name)
                }
                async fn run(
                    args: #never,
                    _: #root::__private::ToolContext,
                ) -> #root::__private::Returned<#never> {
                    match args {}
                }
            }
        };
    }
}

/// The type and the implementation.
pub(super) fn tool(tool: &Tool) -> TokenStream {
    let conditions = &tool.conditions;
    let declaration = declaration(tool);
    let arguments = arguments(tool);
    let implementation = implementation(tool);
    quote! {
        #declaration
        #(#conditions)*
        const _: () = {
            #arguments
            #implementation
        };
    }
}

fn declaration(tool: &Tool) -> TokenStream {
    let (conditions, shared) = (&tool.conditions, &tool.shared);
    let (visibility, type_name) = (&tool.visibility, &tool.type_name);
    let doc = format!("The tool `{}`, as a type.", tool.name);
    quote! {
        #(#conditions)*
        #(#shared)*
        #[doc = #doc]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #type_name {}
    }
}

/// The model's arguments, and the name that each has as a local.
fn fields(tool: &Tool) -> impl Iterator<Item = (&Parameter, &Argument, Ident)> {
    tool.parameters
        .iter()
        .enumerate()
        .filter_map(|(index, parameter)| match &parameter.source {
            Source::Argument(argument) => Some((parameter, argument, local("argument", index))),
            _ => None,
        })
}

fn local(name: &str, index: usize) -> Ident {
    format_ident!("{name}_{index}", span = Span::mixed_site())
}

/// The type of the field for an argument.
fn field_type(tool: &Tool, argument: &Argument) -> TokenStream {
    let (root, ty) = (&tool.root, &argument.ty);
    if argument.borrowed {
        quote_spanned!(ty.span()=> <#ty as #root::__private::Lend>::Owned)
    } else {
        ty.to_token_stream()
    }
}

/// A bound of the derives, as a literal: every field's type can be an argument.
///
/// A bound that does not hold would be an error by itself; a lifetime (an unused one will do) puts
/// that off until the arguments are used, which the tool's implementation does. So a type that cannot
/// be an argument is an error at the argument, and none inside of the derives.
fn bound(tool: &Tool, aliases: &[Ident], binder: &str, bound: &str) -> syn::LitStr {
    let path = tool.root.to_string().replace(' ', "");
    let text: Vec<String> = aliases
        .iter()
        .map(|alias| format!("{binder}{alias}: {path}::__private::{bound}"))
        .collect();
    syn::LitStr::new(&text.join(", "), Span::call_site())
}

fn arguments(tool: &Tool) -> TokenStream {
    let (root, args_name) = (&tool.root, &tool.args_name);
    let serde_path = quote!(#root::__private::serde).to_string().replace(' ', "");
    let schemars_path = quote!(#root::__private::schemars)
        .to_string()
        .replace(' ', "");
    let mut definitions = TokenStream::new();
    let mut defaults = TokenStream::new();
    let mut aliases = Vec::new();
    for (index, (parameter, argument, _)) in fields(tool).enumerate() {
        let conditions = &parameter.conditions;
        let mut ty = field_type(tool, argument);
        // What is there under conditions cannot be bounded: a literal has no conditions.
        if conditions.is_empty() {
            let alias = format_ident!("__AgentkitField{index}", span = argument.ty.span());
            defaults.extend(quote!(type #alias = #ty;));
            ty = alias.to_token_stream();
            aliases.push(alias);
        }
        let (field, forwarded) = (&argument.field, &argument.forwarded);
        let rename = argument.rename.iter();
        let description = description(tool, argument);
        let default = match &argument.default {
            ArgumentDefault::None => TokenStream::new(),
            ArgumentDefault::Trait => quote!(#[serde(default)]),
            ArgumentDefault::Expression(value) => {
                let function = format_ident!("__agentkit_default_{index}");
                let value = default_value(value);
                defaults.extend(quote! {
                    #(#conditions)*
                    fn #function() -> #ty { #value }
                });
                let function = function.to_string();
                quote!(#[serde(default = #function)])
            }
        };
        let doc = format!("The argument `{}`.", field.unraw());
        definitions.extend(quote! {
            #(#conditions)*
            #[doc = #doc]
            #(#[serde(rename = #rename)])*
            #default
            #description
            #(#forwarded)*
            pub #field: #ty,
        });
    }
    let written = bound(tool, &aliases, "for<'agentkit> ", "Written");
    let described = bound(tool, &aliases, "for<'agentkit> ", "Described");
    let read = bound(tool, &aliases, "", "Readable<'de>");
    let doc = format!("The arguments of the tool `{}`.", tool.name);
    quote! {
        #defaults
        #[doc = #doc]
        #[derive(
            #root::__private::serde::Serialize,
            #root::__private::serde::Deserialize,
            #root::__private::schemars::JsonSchema,
        )]
        #[serde(crate = #serde_path, bound(serialize = #written, deserialize = #read))]
        #[schemars(crate = #schemars_path, bound = #described)]
        #[allow(non_camel_case_types)]
        pub struct #args_name { #definitions }
    }
}

/// A string literal stands for whatever can be made from one.
fn default_value(value: &TokenStream) -> TokenStream {
    let span = value.span();
    match syn::parse2::<syn::LitStr>(value.clone()) {
        Ok(literal) => quote_spanned!(span=> ::core::convert::From::from(#literal)),
        Err(_) => value.clone(),
    }
}

/// Also says that there is no description: schemars would take the field's own doc comment.
fn description(tool: &Tool, argument: &Argument) -> TokenStream {
    if argument.docs.is_empty() {
        quote!(#[schemars(description = "")])
    } else {
        let text = argument.docs.expression(&tool.root);
        quote!(#[schemars(description = #text)])
    }
}

fn implementation(tool: &Tool) -> TokenStream {
    let Tool {
        root,
        type_name,
        args_name,
        name,
        ..
    } = tool;
    let never = types::never(root);
    let (suspend, resume) = match &tool.suspension {
        Some(suspension) => (
            suspension.suspend.to_token_stream(),
            suspension.resume.to_token_stream(),
        ),
        None => (never.clone(), never),
    };
    let output = match &tool.output {
        Output::Named(ty) => ty.to_token_stream(),
        Output::Opaque(_) => quote!(#root::__private::serde_json::Value),
        Output::Unit => quote!(()),
    };
    let [output, suspend, resume] = [("Output", output), ("Suspend", suspend), ("Resume", resume)]
        .map(|(name, ty)| associated(name, &ty));
    let spec = spec(tool);
    let run = run(tool);
    // Where a type cannot be an argument, this is what the errors point to: the only argument,
    // or else the function, since a wrong argument would mislead.
    let mut args = args_name.clone();
    let mut arguments = fields(tool);
    args.set_span(match (arguments.next(), arguments.next()) {
        (Some((_, only, _)), None) => only.ty.span(),
        _ => tool.function.span(),
    });
    quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #root::__private::Tool for #type_name {
            const NAME: &'static ::core::primitive::str = #name;
            type Args = #args;
            #output
            #suspend
            #resume
            #spec
            #run
        }
    }
}

fn spec(tool: &Tool) -> TokenStream {
    let root = &tool.root;
    let spec = Ident::new("spec", Span::mixed_site());
    let description = tool.docs.expression(root);
    let span = tool.function.span().resolved_at(Span::call_site());
    let source = quote_spanned!(span=>
        #root::__private::SourceLocation {
            file: ::core::file!(),
            line: ::core::line!(),
            column: ::core::column!(),
        }
    );
    let mut rest = TokenStream::new();
    if let Output::Named(ty) = &tool.output {
        rest.extend(quote! {
            #spec.output_schema = {
                #[allow(unused_imports)]
                use #root::__private::returned::{
                    SchemaOfFallible as _, SchemaOfFallibleFlow as _, SchemaOfFlow as _,
                    SchemaOfNothing as _, SchemaOfPlain as _,
                };
                (&&&&&#root::__private::returned::TypeProbe::<#ty>::new()).output_schema()
            };
        });
    }
    if tool.suspension.is_some() {
        rest.extend(quote! {
            #spec.suspend_schema = #root::__private::some_schema::<Self::Suspend>();
            #spec.resume_schema = #root::__private::some_schema::<Self::Resume>();
        });
    }
    let approval = &tool.approval;
    if approval.required {
        let why = option(approval.why.as_ref());
        let ttl = option(approval.ttl_seconds.as_ref());
        let quorum = approval.quorum;
        rest.extend(quote!(#spec.approval = #root::__private::approval(#why, #quorum, #ttl);));
        if let Some(when) = &approval.when {
            let condition = quote_spanned!(when.span()=>
                #root::__private::condition::<Self, _, _>(#when)
            );
            rest.extend(quote!(#spec.approval.when = #condition;));
        }
    }
    if let Some(seconds) = tool.timeout_seconds {
        rest.extend(quote!(#spec.timeout = #root::__private::seconds(#seconds);));
    }
    let labels = &tool.labels;
    rest.extend(quote!(#(#spec.labels.insert(::core::convert::From::from(#labels));)*));
    for Fact { name, derivation } in &tool.facts {
        let fact = quote_spanned!(derivation.span()=>
            #root::__private::fact::<Self, _, _>(#name, #derivation)
        );
        rest.extend(quote!(#spec.facts.push(#fact);));
    }
    for (hint, set) in [
        ("read_only", tool.read_only),
        ("destructive", tool.destructive),
        ("idempotent", tool.idempotent),
    ] {
        let hint = Ident::new(hint, Span::call_site());
        if set {
            rest.extend(quote!(#spec.hints.#hint = true;));
        }
    }
    for parameter in &tool.parameters {
        let Source::Context { ty, borrowed } = &parameter.source else {
            continue;
        };
        let conditions = &parameter.conditions;
        let context = context_type(root, ty, *borrowed);
        rest.extend(quote!(#(#conditions)* #spec.contexts.push(#context);));
    }
    quote! {
        fn spec() -> #root::__private::ToolSpec {
            let mut #spec = #root::__private::spec::<Self>(#description);
            #spec.source = ::core::option::Option::Some(#source);
            #rest
            #spec
        }
    }
}

fn option(value: Option<&impl quote::ToTokens>) -> TokenStream {
    match value {
        Some(value) => {
            quote!(::core::option::Option::Some(::core::convert::From::from(#value)))
        }
        None => quote!(::core::option::Option::None),
    }
}

fn context_type(root: &TokenStream, ty: &Type, borrowed: bool) -> TokenStream {
    let span = ty.span();
    if borrowed {
        quote_spanned!(span=> #root::__private::ContextType::of::<#ty>())
    } else {
        quote_spanned!(span=> {
            #[allow(unused_imports)]
            use #root::__private::contexts::{ClonedContext as _, SharedContext as _};
            (&&#root::__private::contexts::ContextProbe::<#ty>::new()).context_type()
        })
    }
}

fn run(tool: &Tool) -> TokenStream {
    let root = &tool.root;
    let args_name = &tool.args_name;
    let cx = Ident::new("cx", Span::mixed_site());
    let output = Ident::new("output", Span::mixed_site());

    let bindings = fields(tool).map(|(parameter, argument, local)| {
        let (conditions, field) = (&parameter.conditions, &argument.field);
        quote!(#(#conditions)* #field: #local,)
    });
    let mut before = TokenStream::new();
    let mut passed = Vec::new();
    for (index, parameter) in tool.parameters.iter().enumerate() {
        let conditions = &parameter.conditions;
        let value = match &parameter.source {
            Source::Argument(argument) => {
                let local = local("argument", index);
                let ty = &argument.ty;
                if argument.borrowed {
                    quote_spanned!(ty.span()=> #root::__private::Borrow::<#ty>::borrow(&#local))
                } else {
                    quote!(#local)
                }
            }
            Source::Context { ty, borrowed } => {
                let local = local("context", index);
                let fetch = fetch(root, ty, *borrowed, &cx);
                before.extend(quote!(#(#conditions)* let #local = #fetch?;));
                if *borrowed {
                    quote!(&*#local)
                } else {
                    quote!(#local)
                }
            }
            Source::Resume { span } => {
                let local = local("answer", index);
                before.extend(quote_spanned!(*span=>
                    #(#conditions)*
                    let #local = #root::__private::ToolContext::resume::<Self::Resume>(&#cx)?;
                ));
                quote_spanned!(*span=> #local)
            }
        };
        passed.push(quote!(#(#conditions)* #value));
    }
    let cx_pattern = if before.is_empty() {
        quote!(_)
    } else {
        quote!(#cx)
    };
    let call = &tool.call;
    let awaited = tool.is_async.then(|| quote!(.await));
    let settle = settle(tool, &output);
    // The one place at which the future must be `Send` is the name of the function.
    let span = tool.function.span();
    let returned =
        located::keeping_meaning(quote!(#root::__private::Returned<Self::Suspend>), span);
    let head = quote_spanned!(span=>
        async fn run(
            #args_name { #(#bindings)* }: Self::Args,
            #cx_pattern: #root::__private::ToolContext,
        ) -> #returned
    );
    let bind = if matches!(tool.output, Output::Unit) {
        quote! {
            #call(#(#passed),*)#awaited;
            let #output = ();
        }
    } else {
        quote!(let #output = #call(#(#passed),*)#awaited;)
    };
    quote! {
        #head {
            #before
            #bind
            #settle
        }
    }
}

/// An associated type, as a whole where its type is written: a type that cannot stand there, such
/// as a private one of a public tool, is reported there.
fn associated(name: &str, ty: &TokenStream) -> TokenStream {
    let name = Ident::new(name, ty.span());
    quote_spanned!(ty.span()=> type #name = #ty;)
}

fn fetch(root: &TokenStream, ty: &Type, borrowed: bool, cx: &Ident) -> TokenStream {
    let span = ty.span();
    if borrowed {
        quote_spanned!(span=> #root::__private::ToolContext::context::<#ty>(&#cx))
    } else {
        quote_spanned!(span=> {
            #[allow(unused_imports)]
            use #root::__private::contexts::{ClonedContext as _, SharedContext as _};
            (&&#root::__private::contexts::ContextProbe::<#ty>::new()).fetch(&#cx)
        })
    }
}

/// Turns what the function returned into what the run machine takes; which of the forms it has is
/// decided by its type, at the span of the return type.
fn settle(tool: &Tool, output: &Ident) -> TokenStream {
    let root = &tool.root;
    let span = match &tool.output {
        Output::Named(ty) | Output::Opaque(ty) => ty.span(),
        Output::Unit => Span::call_site(),
    };
    let value = quote_spanned!(span.resolved_at(Span::mixed_site())=> output);
    let _ = output;
    let shape = Ident::new("shape", Span::mixed_site());
    let failure = Ident::new("failure", Span::mixed_site());
    quote! {
        let (#shape, #failure) = {
            #[allow(unused_imports)]
            use #root::__private::returned::{
                FailureOfError as _, FailureOfNothing as _, FailureOfText as _,
                ShapeOfFallible as _, ShapeOfFallibleFlow as _, ShapeOfFlow as _,
                ShapeOfPlain as _,
            };
            (
                (&&&&#root::__private::returned::ValueProbe(&#value)).shape::<Self::Suspend>(),
                (&&&#root::__private::returned::ValueProbe(&#value)).failure(),
            )
        };
        #shape.settle(#value, #failure)
    }
}
