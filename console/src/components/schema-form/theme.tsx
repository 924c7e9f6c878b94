/**
 * The templates, fields and widgets of rjsf in the style of the console: the label above a field, the description below it, errors under
 * the field.
 */
import { ActionIcon, Button, Checkbox, Group, NativeSelect, PasswordInput, Textarea, TextInput } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconCopy, IconPlus, IconTrash } from "@tabler/icons-react";
import {
  ADDITIONAL_PROPERTY_FLAG,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  type BaseInputTemplateProps,
  type DescriptionFieldProps,
  type FieldErrorProps,
  type FieldProps,
  type FieldTemplateProps,
  type IconButtonProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type RegistryWidgetsType,
  type TemplatesType,
  type TitleFieldProps,
  type WidgetProps,
  type WrapIfAdditionalTemplateProps,
  buttonId,
  canExpand,
  descriptionId,
  enumOptionSelectedValue,
  enumOptionValueDecoder,
  enumOptionValueEncoder,
  enumOptionsDeselectValue,
  enumOptionsIsSelected,
  enumOptionsSelectValue,
  errorId,
  getWidget,
  optionId,
  titleId,
} from "@rjsf/utils";
import { type RefObject, useRef, useState } from "react";
import { readNumber } from "../../api/json";
import { fromLocal, toLocal } from "../../api/local-time";
import { useDescription } from "../useDescription";
import { digitsOf, isMarked, mark } from "./exact";
import classes from "./Form.module.css";

// ---- templates

function Field(props: FieldTemplateProps) {
  const { id, label, children, errors, rawErrors = [], help, description, rawDescription, hidden, required, displayLabel } = props;
  const place = useRef<HTMLDivElement>(null);
  const texts = [...(rawErrors.length > 0 ? [errorId(id)] : []), ...(displayLabel === true && rawDescription ? [descriptionId(id)] : [])];
  useDescription(place, texts.length === 0 ? undefined : texts.join(" "), `[id="${CSS.escape(id)}"]`);
  if (hidden === true) return <div hidden>{children}</div>;
  return (
    <WrapIfAdditional {...props} ref={place}>
      {displayLabel === true && (
        <label htmlFor={id} className={classes.label}>
          <bdi>{label}</bdi>
          {required === true && <span className={classes.required}> required</span>}
        </label>
      )}
      {displayLabel === true && rawDescription ? description : null}
      {children}
      {errors}
      {help}
    </WrapIfAdditional>
  );
}

function WrapIfAdditional({ id, schema, label, disabled, readonly, onKeyRenameBlur, onRemoveProperty, children, registry, uiSchema, ref }: WrapIfAdditionalTemplateProps & { ref?: RefObject<HTMLDivElement | null> }) {
  if (!(ADDITIONAL_PROPERTY_FLAG in schema)) return <div ref={ref} className={classes.field}>{children}</div>;
  const { RemoveButton } = registry.templates.ButtonTemplates;
  return (
    <div className={classes.additional}>
      <TextInput key={label} id={`${id}-key`} label="Key" defaultValue={label} onBlur={onKeyRenameBlur} disabled={disabled || readonly} />
      <div ref={ref} className={classes.field}>{children}</div>
      <RemoveButton id={buttonId(id, "remove")} disabled={disabled || readonly} onClick={onRemoveProperty} registry={registry} uiSchema={uiSchema} />
    </div>
  );
}

function ObjectPlace({ fieldPathId, title, description, required, schema, uiSchema, registry, properties, formData, disabled, readonly, onAddProperty, optionalDataControl }: ObjectFieldTemplateProps) {
  const { AddButton } = registry.templates.ButtonTemplates;
  const isRoot = fieldPathId.path.length === 0;
  if ((schema.oneOf ?? schema.anyOf) !== undefined && schema.properties === undefined && properties.length === 0) return null;
  return (
    <div className={isRoot ? classes.fields : classes.group} id={fieldPathId.$id} role="group" aria-labelledby={title && !isRoot ? titleId(fieldPathId) : undefined}>
      {title && !isRoot && <Title id={titleId(fieldPathId)} title={title} required={required ?? false} schema={schema} uiSchema={uiSchema ?? {}} registry={registry} />}
      {description && <Description id={descriptionId(fieldPathId)} description={description} schema={schema} uiSchema={uiSchema ?? {}} registry={registry} />}
      {optionalDataControl}
      {properties.filter(({ hidden }) => !hidden).map(({ content }) => content)}
      {canExpand(schema, uiSchema, formData) && <AddButton id={buttonId(fieldPathId, "add")} onClick={onAddProperty} disabled={disabled || readonly} uiSchema={uiSchema ?? {}} registry={registry} />}
    </div>
  );
}

function ArrayPlace({ fieldPathId, title, required, schema, uiSchema, registry, items, canAdd, disabled, readonly, onAddClick, optionalDataControl }: ArrayFieldTemplateProps) {
  const { AddButton } = registry.templates.ButtonTemplates;
  return (
    <div className={classes.group} id={fieldPathId.$id} role="group" aria-labelledby={titleId(fieldPathId)}>
      <Title id={titleId(fieldPathId)} title={title} required={required ?? false} schema={schema} uiSchema={uiSchema ?? {}} registry={registry} />
      {schema.description !== undefined && <Description id={descriptionId(fieldPathId)} description={schema.description} schema={schema} uiSchema={uiSchema ?? {}} registry={registry} />}
      {optionalDataControl}
      {items}
      {canAdd === true && <AddButton id={buttonId(fieldPathId, "add")} onClick={onAddClick} disabled={disabled || readonly} uiSchema={uiSchema ?? {}} registry={registry} />}
    </div>
  );
}

function ArrayItem({ children, buttonsProps, hasToolbar, registry }: ArrayFieldItemTemplateProps) {
  const { ArrayFieldItemButtonsTemplate } = registry.templates;
  return (
    <Group gap="xs" align="flex-end" wrap="nowrap">
      <div className={classes.itemBody}>{children}</div>
      {hasToolbar && (
        <Group gap={0} wrap="nowrap">
          <ArrayFieldItemButtonsTemplate {...buttonsProps} />
        </Group>
      )}
    </Group>
  );
}

function Title({ id, title, required }: TitleFieldProps) {
  return (
    <div id={id} className={classes.title}>
      <bdi>{title}</bdi>
      {required === true && <span className={classes.required}> required</span>}
    </div>
  );
}

function Description({ id, description }: DescriptionFieldProps) {
  return description ? (
    <div id={id} className={classes.description} dir="auto">
      {description}
    </div>
  ) : null;
}

function Errors({ errors = [], fieldPathId }: FieldErrorProps) {
  if (errors.length === 0) return null;
  return (
    <div id={errorId(fieldPathId)} className={classes.error} role="alert">
      {errors.map((error, index) => (
        <div key={index} dir="auto">
          {error}
        </div>
      ))}
    </div>
  );
}

function Choice({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) {
  return (
    <div className={classes.field}>
      {selector}
      {optionSchemaField}
    </div>
  );
}

// ---- buttons

function iconButton(label: string, Icon: typeof IconPlus) {
  return function IconButton({ id, onClick, disabled }: IconButtonProps) {
    return (
      <ActionIcon id={id} aria-label={label} onClick={onClick} disabled={disabled}>
        <Icon size={15} />
      </ActionIcon>
    );
  };
}

function Add({ id, onClick, disabled }: IconButtonProps) {
  return (
    <div>
      <Button id={id} variant="default" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={onClick} disabled={disabled}>
        Add
      </Button>
    </div>
  );
}

// ---- fields of one value

interface TextProps {
  id: string;
  htmlName?: string;
  required?: boolean;
  disabled?: boolean;
  readonly?: boolean;
  placeholder?: string;
  rawErrors?: string[];
}

/** The props that all text fields have in common. */
const common = ({ id, htmlName, required, disabled, readonly, placeholder, rawErrors }: TextProps) => ({
  id,
  name: htmlName ?? id,
  required: required ?? false,
  withAsterisk: false,
  disabled: disabled ?? false,
  readOnly: readonly ?? false,
  placeholder,
  error: (rawErrors?.length ?? 0) > 0,
});

function Input(props: BaseInputTemplateProps) {
  const { id, type, value, autofocus, onChange, onBlur, onFocus, options } = props;
  return (
    <TextInput
      {...common(props)}
      type={type ?? options.inputType ?? "text"}
      value={value === undefined || value === null ? "" : String(value)}
      autoFocus={autofocus ?? false}
      onChange={({ currentTarget }) => onChange(currentTarget.value === "" ? options.emptyValue : currentTarget.value)}
      onBlur={({ currentTarget }) => onBlur(id, currentTarget.value)}
      onFocus={({ currentTarget }) => onFocus(id, currentTarget.value)}
    />
  );
}

function Lines(props: WidgetProps) {
  const { value, onChange, options } = props;
  return (
    <Textarea
      {...common(props)}
      value={(value as string | undefined) ?? ""}
      autosize
      minRows={3}
      maxRows={16}
      onChange={({ currentTarget }) => onChange(currentTarget.value === "" ? options.emptyValue : currentTarget.value)}
    />
  );
}

function Password(props: WidgetProps) {
  const { value, onChange, options } = props;
  return (
    <PasswordInput
      {...common(props)}
      autoComplete="off"
      value={(value as string | undefined) ?? ""}
      visibilityToggleButtonProps={{ "aria-label": "Show it" }}
      onChange={({ currentTarget }) => onChange(currentTarget.value === "" ? options.emptyValue : currentTarget.value)}
    />
  );
}

function Select({ id, htmlName, value, required, disabled, readonly, onChange, options, schema, rawErrors, placeholder, multiple }: WidgetProps) {
  const { enumOptions = [], enumDisabled = [], emptyValue } = options;
  if (multiple === true) return <Checkboxes {...({ id, value, disabled, readonly, onChange, options, schema } as WidgetProps)} />;
  const chosen = enumOptionSelectedValue(value, enumOptions, false, "indexed", "") as string;
  return (
    <NativeSelect
      id={id}
      name={htmlName ?? id}
      value={chosen}
      required={required ?? false}
      withAsterisk={false}
      disabled={(disabled ?? false) || (readonly ?? false)}
      error={(rawErrors?.length ?? 0) > 0}
      // The choice between alternatives of a schema has no label.
      aria-label={/__(one|any)of_select$/.test(id) ? "Kind of value" : undefined}
      onChange={({ currentTarget }) => onChange(enumOptionValueDecoder(currentTarget.value, enumOptions, "indexed", emptyValue))}
      data={[
        ...(schema.default === undefined ? [{ value: "", label: placeholder || (required === true ? "Choose one" : "–") }] : []),
        ...(Array.isArray(enumOptions) ? enumOptions : []).map(({ value: each, label }, index) => ({ value: enumOptionValueEncoder(each, index, "indexed"), label, disabled: Array.isArray(enumDisabled) && enumDisabled.includes(each) })),
      ]}
    />
  );
}

function Check({ id, htmlName, value, disabled, readonly, label, onChange, schema, rawErrors, options }: WidgetProps) {
  return (
    <Checkbox
      id={id}
      name={htmlName ?? id}
      label={<bdi>{label}</bdi>}
      description={options.description ?? schema.description}
      checked={value === true}
      disabled={(disabled ?? false) || (readonly ?? false)}
      error={(rawErrors?.length ?? 0) > 0}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
  );
}

function Checkboxes({ id, value, disabled, readonly, onChange, options }: WidgetProps) {
  const chosen: unknown[] = Array.isArray(value) ? value : [];
  const enumOptions = Array.isArray(options.enumOptions) ? options.enumOptions : [];
  return (
    <div id={id} className={classes.checks} role="group">
      {enumOptions.map(({ value: each, label }, index) => (
        <Checkbox
          key={optionId(id, index)}
          id={optionId(id, index)}
          label={<bdi>{label}</bdi>}
          checked={enumOptionsIsSelected(each, chosen)}
          disabled={(disabled ?? false) || (readonly ?? false)}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? enumOptionsSelectValue(index, chosen, enumOptions) : enumOptionsDeselectValue(index, chosen, enumOptions))}
        />
      ))}
    </div>
  );
}

/** Shows the time in the reader's time zone. The value is in UTC. */
function DateTime({ value, onChange, ...props }: WidgetProps) {
  return <Input {...(props as BaseInputTemplateProps)} type="datetime-local" value={toLocal(String(value ?? ""))} onChange={(local: string | undefined) => onChange(fromLocal(local ?? "") ?? undefined)} />;
}

/** A number with all its digits: a text field whose value becomes a number if the text is one. */
function NumberText(props: FieldProps) {
  const { schema, uiSchema, fieldPathId, formData, onChange, onBlur, onFocus, autofocus, registry } = props;
  const [typed, setTyped] = useState<string>();
  // The typed text stays as long as it has the same value: "1." and "1.0" are 1.
  const same = typed !== undefined && (readNumber(typed) === null ? typed === formData : digitsOf(mark(readNumber(typed)!)) === digitsOf(formData));
  const { StringField } = registry.fields;
  if (registry.schemaUtils.isSelect(schema) || (uiSchema?.["ui:widget"] !== undefined && uiSchema["ui:widget"] !== "text")) {
    const Widget = getWidget(schema, (uiSchema?.["ui:widget"] as string | undefined) ?? "select", registry.widgets);
    if (Widget !== undefined && StringField !== undefined) return <StringField {...props} />;
  }
  return (
    <TextInput
      {...common({ ...props, id: fieldPathId.$id })}
      inputMode={schema.type === "integer" ? "numeric" : "decimal"}
      value={same ? typed : isMarked(formData) || typeof formData === "number" ? digitsOf(formData) : ((formData as string | undefined) ?? "")}
      autoFocus={autofocus ?? false}
      classNames={{ input: "nums" }}
      onChange={({ currentTarget: { value } }) => {
        setTyped(value);
        const number = readNumber(value);
        onChange(value === "" ? undefined : number === null ? value : mark(number), fieldPathId.path);
      }}
      onBlur={({ currentTarget }) => onBlur(fieldPathId.$id, currentTarget.value)}
      onFocus={({ currentTarget }) => onFocus(fieldPathId.$id, currentTarget.value)}
    />
  );
}

export const fields = { NumberField: NumberText };

export const widgets: RegistryWidgetsType = {
  TextareaWidget: Lines,
  PasswordWidget: Password,
  SelectWidget: Select,
  RadioWidget: Select,
  CheckboxWidget: Check,
  CheckboxesWidget: Checkboxes,
  DateTimeWidget: DateTime,
};

export const templates: Partial<Omit<TemplatesType, "ButtonTemplates">> & { ButtonTemplates: Partial<TemplatesType["ButtonTemplates"]> } = {
  FieldTemplate: Field,
  WrapIfAdditionalTemplate: WrapIfAdditional,
  ObjectFieldTemplate: ObjectPlace,
  ArrayFieldTemplate: ArrayPlace,
  ArrayFieldItemTemplate: ArrayItem,
  TitleFieldTemplate: Title,
  DescriptionFieldTemplate: Description,
  FieldErrorTemplate: Errors,
  MultiSchemaFieldTemplate: Choice,
  BaseInputTemplate: Input,
  ButtonTemplates: {
    AddButton: Add,
    CopyButton: iconButton("Copy", IconCopy),
    MoveDownButton: iconButton("Move down", IconArrowDown),
    MoveUpButton: iconButton("Move up", IconArrowUp),
    RemoveButton: iconButton("Remove", IconTrash),
    ClearButton: iconButton("Clear", IconTrash),
  },
};
