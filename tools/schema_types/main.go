// Dumps, as JSON on standard output, what Go's reflection knows of the Kubernetes API types and OpenAPI does not:
// omitempty, pointers, embedding, the names of Go types, the patch tags. Run by tools/generate_schema.py.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/scheme"
)

type field struct {
	Name     string `json:"name"`
	Omit     string `json:"omit,omitempty"`
	Pointer  bool   `json:"pointer,omitempty"`
	Embedded string `json:"embedded,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
	Type     *node  `json:"type"`
}

type node struct {
	Kind    string `json:"kind"`
	Go      string `json:"go"`
	Ref     string `json:"ref,omitempty"`
	Pointer bool   `json:"pointer,omitempty"`
	Elem    *node  `json:"elem,omitempty"`
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	structs     = map[string][]field{}
)

func fullName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func describe(t reflect.Type) *node {
	if t.Kind() == reflect.Pointer {
		n := describe(t.Elem())
		n.Pointer = true
		return n
	}
	n := &node{Kind: t.Kind().String(), Go: t.String()}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		n.Kind, n.Ref = "custom", fullName(t)
		return n
	}
	switch t.Kind() {
	case reflect.Struct:
		n.Ref = fullName(t)
		visit(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			n.Kind = "bytes"
			return n
		}
		n.Elem = describe(t.Elem())
	case reflect.Map:
		n.Elem = describe(t.Elem())
	}
	return n
}

func visit(t reflect.Type) {
	name := fullName(t)
	if _, seen := structs[name]; seen {
		return
	}
	structs[name] = nil
	structs[name] = fieldsOf(t, "")
}

func fieldsOf(t reflect.Type, embedded string) []field {
	var out []field
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && tag == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			out = append(out, fieldsOf(inner, embedded+f.Name+".")...)
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		entry := field{Name: tag, Embedded: embedded, Strategy: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey")}
		for _, option := range strings.Split(options, ",") {
			if option == "omitempty" || option == "omitzero" {
				entry.Omit = option
			}
		}
		entry.Type = describe(f.Type)
		entry.Pointer = f.Type.Kind() == reflect.Pointer
		out = append(out, entry)
	}
	return out
}

func main() {
	kinds := map[string]string{}
	for _, known := range []map[schema.GroupVersionKind]reflect.Type{
		scheme.Scheme.AllKnownTypes(), apiextensions.Scheme.AllKnownTypes(), aggregator.Scheme.AllKnownTypes(),
	} {
		for gvk, t := range known {
			visit(t)
			kinds[gvk.Group+"/"+gvk.Version+"/"+gvk.Kind] = fullName(t)
		}
	}
	for _, v := range []any{metav1.DeleteOptions{}, metav1.PartialObjectMetadata{}, metav1.Status{}} {
		visit(reflect.TypeOf(v))
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"structs": structs, "kinds": kinds})
}
