package blockbase

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

type schema = map[string]any

var (
	rawType        = reflect.TypeFor[json.RawMessage]()
	numberType     = reflect.TypeFor[json.Number]()
	timeType       = reflect.TypeFor[time.Time]()
	textType       = reflect.TypeFor[encoding.TextMarshaler]()
	marshalingType = reflect.TypeFor[json.Marshaler]()
)

// inputSchema is the JSON Schema of what encoding/json reads into the type; of type object, as every input is.
func inputSchema[In any]() schema {
	kind := reflect.TypeFor[In]()
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if made := schemaOf(kind, nil); made["type"] == "object" {
		return made
	}
	return schema{"type": "object"}
}

// schemaOf makes the schema of a type; `within` are the structs that it stands in. A type that holds itself is not followed.
func schemaOf(kind reflect.Type, within []reflect.Type) schema {
	switch {
	case kind == rawType:
		return schema{}
	case kind == numberType:
		return schema{"type": "number"}
	case kind == timeType:
		return schema{"type": "string", "format": "date-time"}
	case kind.Kind() == reflect.Pointer:
		return orNull(schemaOf(kind.Elem(), within))
	case kind.Implements(marshalingType) || reflect.PointerTo(kind).Implements(marshalingType):
		return schema{}
	case kind.Implements(textType) || reflect.PointerTo(kind).Implements(textType):
		return schema{"type": "string"}
	}
	switch kind.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Slice, reflect.Array:
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string", "contentEncoding": "base64"}
		}
		return schema{"type": "array", "items": schemaOf(kind.Elem(), within)}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(kind.Elem(), within)}
	case reflect.Struct:
		for _, outer := range within {
			if outer == kind {
				return schema{"type": "object"}
			}
		}
		properties, required := schema{}, []string{}
		addFields(kind, append(within, kind), properties, &required)
		return schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	default:
		return schema{}
	}
}

// addFields adds the fields that encoding/json reads. A pointer and what may be left out when it is written may be left out.
func addFields(kind reflect.Type, within []reflect.Type, properties schema, required *[]string) {
	for index := range kind.NumField() {
		field := kind.Field(index)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if field.Anonymous && name == "" {
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				addFields(embedded, within, properties, required)
				continue
			}
		}
		if !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		property := schemaOf(field.Type, within)
		if strings.Contains(","+options+",", ",string,") {
			property = schema{"type": "string"}
		}
		if description := field.Tag.Get("description"); description != "" {
			property["description"] = description
		}
		properties[name] = property
		options = "," + options + ","
		if field.Type.Kind() != reflect.Pointer && !strings.Contains(options, ",omitempty,") && !strings.Contains(options, ",omitzero,") {
			*required = append(*required, name)
		}
	}
}

func orNull(of schema) schema {
	switch kind, known := of["type"].(string); {
	case known:
		of["type"] = []string{kind, "null"}
		return of
	case len(of) == 0:
		return of
	default:
		return schema{"anyOf": []schema{of, {"type": "null"}}}
	}
}
