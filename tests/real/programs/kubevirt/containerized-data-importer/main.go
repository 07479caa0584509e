// Prints what CDI's operator would install, as one JSON list: the definitions of its kinds, and the webhooks and the API
// service of cdi-apiserver in the namespace that is given.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	"kubevirt.io/containerized-data-importer/pkg/operator/resources"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/cluster"
)

func main() {
	var printed []any
	for _, text := range resources.CDICRDs {
		definition := map[string]any{}
		if err := yaml.NewYAMLToJSONDecoder(strings.NewReader(text)).Decode(&definition); err != nil {
			log.Fatal(err)
		}
		printed = append(printed, definition)
	}
	registrations, err := cluster.CreateAllDynamicResources(&cluster.FactoryArgs{Namespace: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	for _, registration := range registrations {
		printed = append(printed, registration)
	}
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		log.Fatal(err)
	}
}
