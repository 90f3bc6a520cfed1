import { randomUUID } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import type { Test } from 'tap'
import { tempFolder } from '../temp-repository.ts'
import { apply, kubectl } from './kubectl.ts'

/** A folder of this machine, which pods, who are others than root, may read once it is a claim. */
export async function publicFolder(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  await chmod(folder, 0o755)
  return folder
}

/** Makes a folder of this machine, which the node sees too, the claim `models` of a namespace. */
export async function createClaim(t: Test, namespace: string, folder: string): Promise<void> {
  // The claim has a volume of its own: one of a test before may be on its way out still.
  const volume = `${namespace}-models-${randomUUID().slice(0, 8)}`
  const common = { accessModes: ['ReadWriteMany'], storageClassName: '' }
  const size = { storage: '1Gi' }
  t.teardown(() =>
    kubectl('delete', 'persistentvolume', volume, '--ignore-not-found', '--wait=false'),
  )
  await apply(
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: volume },
      spec: { ...common, capacity: size, hostPath: { path: folder } },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name: 'models' },
      spec: { ...common, volumeName: volume, resources: { requests: size } },
    },
  )
}
