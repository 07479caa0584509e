// Prints what virt-operator would install, as one JSON list: the definitions of KubeVirt's kinds, the webhooks and
// the API services of virt-api in the namespace that is given.
package main

import (
	"encoding/json"
	"log"
	"os"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

func main() {
	namespace := os.Args[1]
	var printed []any
	for _, make := range []func() (*extv1.CustomResourceDefinition, error){
		components.NewKubeVirtCrd,
		components.NewVirtualMachineInstanceCrd,
		components.NewPresetCrd,
		components.NewReplicaSetCrd,
		components.NewVirtualMachineCrd,
		components.NewVirtualMachineInstanceMigrationCrd,
		components.NewVirtualMachineSnapshotCrd,
		components.NewVirtualMachineSnapshotContentCrd,
		components.NewVirtualMachineRestoreCrd,
		components.NewVirtualMachineInstancetypeCrd,
		components.NewVirtualMachineClusterInstancetypeCrd,
		components.NewVirtualMachinePoolCrd,
		components.NewMigrationPolicyCrd,
		components.NewVirtualMachinePreferenceCrd,
		components.NewVirtualMachineClusterPreferenceCrd,
		components.NewVirtualMachineExportCrd,
		components.NewVirtualMachineCloneCrd,
		components.NewVirtualMachineBackupCrd,
		components.NewVirtualMachineBackupTrackerCrd,
	} {
		definition, err := make()
		if err != nil {
			log.Fatal(err)
		}
		printed = append(printed, definition)
	}
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		printed = append(printed, service)
	}
	printed = append(printed,
		components.NewVirtAPIMutatingWebhookConfiguration(namespace),
		components.NewVirtAPIValidatingWebhookConfiguration(namespace),
		components.NewKubeVirtPriorityClassCR(),
	)
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		log.Fatal(err)
	}
}
