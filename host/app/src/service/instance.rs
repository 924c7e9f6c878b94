//! The information that everybody may have before signing in, and what this process reports to the others.

use blockbase_schema::Result;
use blockbase_store::{ReadCost, Service};
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::state::instance::{Process, VERSION};

/// The ways to sign in to this server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcInstance", deny_unknown_fields)]
pub struct InstanceAnswer {
    /// Whether nobody has signed up yet. The first account becomes admin.
    needs_admin: bool,
    /// Whether the first sign-up needs the header `x-setup-token`.
    setup_token: bool,
    /// Whether people may sign up.
    sign_up: bool,
    /// Whether guests may sign in.
    anonymous: bool,
    /// Whether the server sends mail, so that people can ask for another password.
    mail: bool,
    /// Whether an address has to be proved before its user can sign in.
    email_verification: bool,
    methods: Vec<SignInMethod>,
    providers: Vec<Provider>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SignInMethod {
    Password,
    Anonymous,
    Passkey,
    MagicLink,
    EmailOtp,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct Provider {
    id: String,
    name: String,
}

impl App {
    /// The information that a client needs before sign-in, and nothing else. It costs no query while it is cached.
    pub async fn instance(&self) -> Result<InstanceAnswer> {
        let needs_admin = !self.kept_has_users().await?;
        let settings = &self.settings;
        let mut methods = vec![SignInMethod::Password];
        if settings.anonymous_auth {
            methods.push(SignInMethod::Anonymous);
        }
        Ok(InstanceAnswer {
            needs_admin,
            setup_token: needs_admin && settings.setup_token.is_some(),
            sign_up: needs_admin || !settings.disable_signup,
            anonymous: settings.anonymous_auth,
            mail: settings.mail.is_some(),
            email_verification: settings.require_email_verification,
            methods,
            providers: Vec::new(),
        })
    }

    /// Whether a user with a credential exists, from the cache if possible. The cached value is cleared together with the
    /// identities.
    async fn kept_has_users(&self) -> Result<bool> {
        let now = self.clock.now();
        if let Some(known) = self.identities.has_users(now) {
            return Ok(known);
        }
        let generation = self.identities.generation();
        let found = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.has_credentialed_user().await?) }))
            .await?;
        self.identities.keep_has_users(found, now, generation);
        Ok(found)
    }

    /// Reports to the other instances that this one is alive.
    pub async fn note_instance(&self) -> Result<()> {
        let Process { id, started_at } = self.process.clone();
        let age_ms = (self.clock.now() - started_at).max(0);
        self.store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move { Ok(connection.note_instance(&id, VERSION, age_ms).await?) })
            })
            .await
    }

    /// Reports to the other instances that this one ends.
    pub async fn forget_instance(&self) -> Result<()> {
        let id = self.process.id.clone();
        self.store
            .write_in_reserve(Service, move |connection| Box::pin(async move { Ok(connection.forget_instance(&id).await?) }))
            .await
    }
}
