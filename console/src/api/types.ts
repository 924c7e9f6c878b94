/** Short names for the types of the server's OpenAPI document. */
import type { components, paths } from "./schema";

type Schemas = components["schemas"];
type DataOf<Path extends keyof paths> = paths[Path] extends { get: { responses: { 200: { content: { "application/json": { data: infer Data } } } } } } ? Data : never;

export type Me = Schemas["SvcMe"];
export type Instance = Schemas["SvcInstance"];
export type Grant = Schemas["SvcGrant"];
/** The fields that a grant reads and writes. A missing list means all fields. */
export type GrantFields = NonNullable<Grant["fields"]>;
/** The names of fields: only these, or all except these. */
export type FieldList = NonNullable<GrantFields["read"]>;
export type Permissions = DataOf<"/api/v1/me/permissions">;
export type Action = Grant["actions"][number];
/** A user with the members that the caller may read. */
export type SeenUser = Schemas["SvcSeenUser"];
export type PasswordLink = Schemas["SvcPasswordLink"];
/** What the lists of one's own sessions and of another user's sessions both say. */
export type Session = Pick<Schemas["SvcListedSession"], keyof Schemas["SvcListedSession"] & keyof Schemas["SvcUserSession"]>;
export type Role = Schemas["SvcRole"];
export type ExplainBody = paths["/api/v1/roles/{id}/explain"]["post"]["requestBody"]["content"]["application/json"];
export type Explanation = Schemas["SvcExplanation"];
export type ExplainedGrant = Schemas["SvcExplainedGrant"];
export type EffectiveRights = Schemas["SvcRolePermissions"]["resources"][number];
export type ApiKey = Schemas["SvcApiKey"];
export type Suspension = NonNullable<ApiKey["suspended"]>;

export type Field = Schemas["SvcField"];
export type FieldType = Field["type"];
export type FieldChanges = Schemas["SvcFieldChanges"];
export type DataObject = Schemas["SvcObject"];
export type Relationship = Schemas["SvcRelationship"];
export type RelationshipInput = Schemas["SvcRelationshipInput"];
export type Schema = DataOf<"/api/v1/schema">;
export type Plan = Schemas["SvcChangePlan"];
export type Dependent = Schemas["SvcDependent"];
export type Migration = Schemas["SvcMigration"];
export type SchemaChange = Schemas["SvcSchemaChange"];

export type LiveEvent = Schemas["SvcEvent"];
export type Delivery = Schemas["SvcDelivery"];
export type Subscription = Schemas["SvcSubscription"];
export type Webhook = Schemas["SvcWebhook"];
export type Task = Schemas["SvcTask"];
export type NewTaskBody = paths["/api/v1/tasks"]["post"]["requestBody"]["content"]["application/json"];
export type TaskRun = Schemas["SvcTaskRun"];

export type Block = Schemas["SvcBlock"];
export type BlockAction = Schemas["SvcBlockAction"];
export type BlockPermissions = Schemas["SvcBlockPermissions"];
export type BlockInstances = Schemas["SvcBlockInstances"];
export type InstanceReuse = Schemas["SvcInstanceReuse"];
export type DataPermission = Schemas["SvcDataPermission"];
export type NewPermissions = Schemas["SvcNewPermissions"];
export type Inspection = Schemas["SvcBlockInspection"];
export type InstallReport = Schemas["SvcInstallReport"];
export type HandlerUsage = Schemas["SvcHandlerUsage"];
export type HandlerParts = Schemas["SvcHandlerParts"];
export type BlockSecret = Schemas["SvcBlockSecret"];
export type LogLine = Schemas["SvcBlockLogLine"];

export type Setting = Schemas["SvcSetting"];
export type Status = Schemas["SvcStatus"];
