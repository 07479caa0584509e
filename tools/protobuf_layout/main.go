// Dumps, as JSON on standard output, how the Kubernetes API types are laid out in protobuf: for each struct the fields by
// number, with their JSON names and types. Run by tools/make_protobuf_layout.py.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/scheme"
)

type field struct {
	Name string `json:"name"` // empty: its fields are those of the struct around it
	Type string `json:"type"` // string, bytes, bool, int, uint, double, or the name of a struct
	Form string `json:"form"` // "", "pointer", "list" or "map"
}

type message interface{ Unmarshal([]byte) error }

var (
	messages = reflect.TypeFor[message]()
	structs  = map[string]map[string]field{}
)

func fullName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// Some slices are messages of their own, because protobuf has no maps of lists.
func isMessage(t reflect.Type) bool { return reflect.PointerTo(t).Implements(messages) }

func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "uint"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if isMessage(t) {
			return "strings"
		}
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
	case reflect.Struct:
		visit(t)
		return fullName(t)
	}
	panic("no protobuf form of " + t.String())
}

func visit(t reflect.Type) {
	name := fullName(t)
	if _, seen := structs[name]; seen {
		return
	}
	fields := map[string]field{}
	structs[name] = fields
	for i := range t.NumField() {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(parts) < 2 || !f.IsExported() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[parts[1]] = describeField(tag, f.Type)
	}
}

func describeField(name string, t reflect.Type) field {
	switch {
	case t.Kind() == reflect.Map:
		return field{name, describe(t.Elem()), "map"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !isMessage(t):
		return field{name, describe(t.Elem()), "list"}
	case t.Kind() == reflect.Pointer:
		return field{name, describe(t), "pointer"}
	}
	return field{name, describe(t), ""}
}

func main() {
	kinds := map[string]string{}
	for _, known := range []map[schema.GroupVersionKind]reflect.Type{
		scheme.Scheme.AllKnownTypes(), apiextensions.Scheme.AllKnownTypes(), aggregator.Scheme.AllKnownTypes(),
	} {
		for gvk, t := range known {
			if gvk.Version == "__internal" || gvk.Kind == "WatchEvent" || !isMessage(t) {
				continue
			}
			visit(t)
			kinds[gvk.Group+"/"+gvk.Version+"/"+gvk.Kind] = fullName(t)
		}
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"structs": structs, "kinds": kinds})
}
