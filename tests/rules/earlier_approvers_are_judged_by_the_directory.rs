use std::sync::{Arc, Mutex};

use agentkit::{
    approval::{Directory, DirectoryError, Standing},
    policy::PolicySource,
    prelude::*,
    run::DecideError,
};

use crate::desk::*;

/// The second person may approve only after someone of finance.
const POLICY: &str = r#"
    @id("pays") permit (principal, action == Action::"pay with approval", resource)
        when { context.approvals.count >= 2 };
    @id("first") permit (principal in Role::"finance", action == Action::"approve pay", resource)
        when { context.approvals.count == 0 };
    @id("second") permit (principal, action == Action::"approve pay", resource)
        when { context.approvals.count == 1 && User::"fiona" in Role::"finance" };
"#;

#[derive(Clone)]
struct Staff(Arc<Mutex<&'static str>>);

#[async_trait::async_trait]
impl Directory for Staff {
    async fn standing(&self, person: &Principal) -> Result<Standing, DirectoryError> {
        let role = if person.id == "fiona" {
            *self.0.lock().unwrap()
        } else {
            "clerk"
        };
        Ok(Standing::Known {
            roles: [role.to_owned()].into(),
        })
    }
}

#[tokio::test]
async fn when_the_next_person_decides() {
    for (role, permitted) in [("finance", true), ("clerk", false)] {
        let world = World::new();
        let staff = Staff(Arc::new(Mutex::new("finance")));
        let builder = world.builder::<Desk>(pays("bob", 5)).await;
        let desk = builder
            .policies(vec![PolicySource::new("test.cedar", POLICY)])
            .directory(staff.clone())
            .build()
            .unwrap();
        let (_, call) = stopped(&desk).await;
        // Her credentials claim the role, now and then; the directory knows better.
        desk.decide(&fiona(), approve(&call)).await.unwrap();
        *staff.0.lock().unwrap() = role;
        match desk.decide(&frank(), approve(&call)).await {
            Ok(decided) => assert!(permitted, "{decided:?}"),
            Err(DecideError::NotAllowed { .. }) => assert!(!permitted),
            Err(error) => panic!("{error:?}"),
        }
    }
}
