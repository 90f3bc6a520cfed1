// Builds the programs of Kubernetes that tests start, if they are not there. A CI begins with it in the background.
import { runScript } from './setup/failure.mjs'
import { findKubeBinaries } from './setup/kube-binaries.mjs'

await runScript(async () => {
  const { TUTTI_KUBE_BIN: folder, TUTTI_KUBE_MISSING: missing } = await findKubeBinaries()
  console.log(folder ?? missing)
  return folder === undefined ? 1 : 0
})
