import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { adderFrom, SPACE } from './adders.ts'
import { apply, getObject, kubectl } from './kubectl.ts'
import { sideBySide } from './side-by-side.ts'
import { mainOf, openWorkloads } from './workloads.ts'

const GPU = 'nvidia.com/gpu'
/** Names of Models, and what each of them wants. */
const GPUS = [
  ['gpu-whole', GPU],
  ['gpu-part', 'nvidia.com/mig-1g.5gb'],
  ['gpu-shared', 'nvidia.com/gpu.shared'],
] as const
/** More than the node's device plugin pretends. */
const TOO_MANY = 3
/** Name of a RuntimeClass whose handler is the node's own. */
const CLASS = 'for-gpus'

/**
 * Models with devices: scheduled to where they are, limited, told apart by resource and runtime class. What they are given is
 * pretended, so no model loads; it says so, and serves nothing from the CPU.
 */
export async function showDevices(all: Test): Promise<void> {
  await apply({
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: CLASS },
    handler: 'runc',
  })
  all.teardown(() => kubectl('delete', 'runtimeclass', CLASS, '--ignore-not-found'))

  await sideBySide(all, {
    ...Object.fromEntries(
      GPUS.map(([name, resourceName]) => [
        `${resourceName} is there, and no driver behind it`,
        (t: Test) => showWithoutDriver(t, name, resourceName),
      ]),
    ),
    'more devices than a node has': async (t) => {
      await accelerated('gpu-many', { resourceName: GPU, count: TOO_MANY })
      t.match(await failureOf('gpu-many', 'Unschedulable'), /Insufficient nvidia\.com\/gpu/)
      await remove('gpu-many')
    },
    'a runtime class that is not there': async (t) => {
      await accelerated('gpu-class', { resourceName: GPU, count: 1, runtimeClassName: 'absent' })
      t.match(await failureOf('gpu-class', 'FailedCreate'), /RuntimeClass "absent" not found/)
      await remove('gpu-class')
    },
  })
}

async function showWithoutDriver(t: Test, name: string, resourceName: string): Promise<void> {
  await accelerated(name, { resourceName, count: 1, runtimeClassName: CLASS })
  const message = await failureOf(name, 'ModelLoadFailed')
  t.match(message, new RegExp(`accelerator ${resourceName.replaceAll('.', '\\.')}=1, `))
  t.match(message, /NVIDIA_VISIBLE_DEVICES=GPU-fake-\d/)
  t.match(message, "want a node with NVIDIA's driver")
  t.match(message, 'want an image like step-cuda')
  const [pod] = await openWorkloads(SPACE).pods(`tutti.dev/model=${name}`)
  if (pod === undefined) throw new Error(`there is no pod of ${name}`)
  t.equal(pod['spec'].runtimeClassName, CLASS)
  t.match(mainOf(pod)['resources'].limits, { [resourceName]: '1' })
  await remove(name)
}

function accelerated(name: string, accelerator: object): Promise<void> {
  return apply(adderFrom(name, { storageUri: 'pvc://models/plus-one', accelerator }))
}

/** Waits until a Model's last failure has the reason and makes it not Ready, and returns what the Model says of it. */
function failureOf(name: string, reason: string): Promise<string> {
  let last: unknown
  return until(
    () => `${name} says ${reason}; it says ${JSON.stringify(last)}`,
    async () => {
      const { status } = await getObject('model', name, `--namespace=${SPACE}`)
      const { lastFailure, conditions = [] } = status ?? {}
      last = { lastFailure, conditions }
      const isSo = conditions.some(({ type, ...condition }: PlainObject) => {
        return type === 'Ready' && condition['status'] === 'False' && condition['reason'] === reason
      })
      return isSo && lastFailure?.reason === reason && String(lastFailure.message)
    },
  )
}

/** With its pod. */
async function remove(name: string): Promise<void> {
  await kubectl('delete', 'model', name, `--namespace=${SPACE}`)
  const pods = ['pods', `--selector=tutti.dev/model=${name}`, `--namespace=${SPACE}`]
  await kubectl('wait', '--for=delete', '--timeout=120s', ...pods)
}
