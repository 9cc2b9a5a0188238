use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use super::RunContext;

/// The type of a context, with a name for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextType {
    /// The type's path, as the compiler prints it.
    pub name: &'static str,
    /// The type.
    pub id: TypeId,
}

impl ContextType {
    /// The context type `C`.
    pub fn of<C: Any>() -> Self {
        Self {
            name: type_name::<C>(),
            id: TypeId::of::<C>(),
        }
    }
}

/// What an application lends to its tools (connections, clients, settings), one value a type.
#[derive(Clone, Default)]
pub struct Contexts {
    values: HashMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>,
}

impl Contexts {
    /// No contexts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lends `value` under its type. A value of the same type that was there is replaced.
    pub fn insert<C: Any + Send + Sync>(&mut self, value: C) {
        self.insert_shared(Arc::new(value));
    }

    /// Lends a value that the application shares. A value of the same type that was there is
    /// replaced.
    pub fn insert_shared<C: Any + Send + Sync>(&mut self, value: Arc<C>) {
        self.values
            .insert(TypeId::of::<C>(), (type_name::<C>(), value));
    }

    /// The value of type `C`, if there is one.
    pub fn get<C: Any + Send + Sync>(&self) -> Option<Arc<C>> {
        let (_, value) = self.values.get(&TypeId::of::<C>())?;
        Arc::clone(value).downcast().ok()
    }

    /// The names of those `needed` types of which there is no value.
    pub fn missing(&self, needed: &[ContextType]) -> Vec<&'static str> {
        needed
            .iter()
            // The run machine gives every call this one.
            .filter(|context| context.id != TypeId::of::<RunContext>())
            .filter(|context| !self.values.contains_key(&context.id))
            .map(|context| context.name)
            .collect()
    }
}

impl fmt::Debug for Contexts {
    /// Names the types only: the values are likely to hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.values.values().map(|(name, _)| *name).collect();
        names.sort_unstable();
        f.debug_set().entries(names).finish()
    }
}
