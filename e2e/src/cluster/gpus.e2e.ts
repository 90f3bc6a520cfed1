import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { errorFields } from '../processes/asking.ts'
import { runTutti } from '../serving.ts'
import { createClaim, publicFolder } from './claim.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { install, removeAfter } from './release.ts'
import { mainOf, openWorkloads } from './workloads.ts'

t.setTimeout(1_200_000)

const SPACE = 'gpus'
const IN_SPACE = `--namespace=${SPACE}`
/** Cards of a vendor for which no driver of CUDA is asked; the node has two. */
const CARD = 'gpu.example.com/card'
/** Driver of the node for claims, which has one device. */
const DRIVER = 'gpu.example.com'
const CLAIMED = 'one-gpu'

const CONFIG = `backend: "python"
max_batch_size: 0
input { name: "x" data_type: TYPE_UINT8 dims: 1 }
output { name: "y" data_type: TYPE_UINT8 dims: 1 }
instance_group { kind: KIND_GPU }
`

/** Gives back what it gets. From the first 255 on the device fails, until the container has started anew. */
const CODE = `import os
import tempfile
import triton_python_backend_utils as pb_utils

BROKEN = os.path.join(tempfile.gettempdir(), "broken")

def began():
    with open("/proc/1/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[19]

def is_broken():
    if not os.path.exists(BROKEN):
        return False
    with open(BROKEN) as file:
        return file.read() == began()

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            if x[0] == 255:
                with open(BROKEN, "w") as file:
                    file.write(began())
            if is_broken():
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
        return answers
`

/** Writes a repository of Triton's with the model `card`, which wants a GPU. */
async function writeRepository(t: Test): Promise<string> {
  const folder = await publicFolder(t)
  await mkdir(join(folder, 'card', '1'), { recursive: true })
  await writeFile(join(folder, 'card', 'config.pbtxt'), CONFIG)
  await writeFile(join(folder, 'card', '1', 'model.py'), CODE)
  return folder
}

/** A pod that has a card, and nothing to do. */
const HOLDER = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: SPACE, name: 'holder' },
  spec: {
    terminationGracePeriodSeconds: 1,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65534,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'pause',
        image: 'localhost/pause:test',
        imagePullPolicy: 'Never',
        resources: { limits: { [CARD]: '1' } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
}

async function holdCard(): Promise<void> {
  await apply(HOLDER)
  await kubectl('wait', '--for=condition=Ready', 'pod/holder', '--timeout=120s', IN_SPACE)
}

const untilReady = (name: string) =>
  kubectl('wait', '--for=condition=Ready', `model/${name}`, '--timeout=300s', IN_SPACE)

/** Waits until a condition of a Model has the reason. @returns its message. */
function conditionOf(name: string, type: string, reason: string): Promise<string> {
  return until(`${name} says ${type} ${reason}`, async () => {
    const { status } = await getObject('model', name, IN_SPACE)
    const conditions: readonly PlainObject[] = status?.conditions ?? []
    const found = conditions.find((one) => one['type'] === type && one['reason'] === reason)
    return found && String(found['message'])
  })
}

/** Has the pods of a Model replaced, by such that have the note. */
async function update(name: string, note: string, spec: object = {}): Promise<void> {
  const podTemplate = { metadata: { annotations: { note } } }
  await openWorkloads(SPACE).change('model', name, { ...spec, podTemplate })
}

const untilNoted = (name: string, note: string) =>
  openWorkloads(SPACE).settled(`tutti.dev/model=${name}`, 1, ({ metadata }) => {
    return metadata.annotations?.note === note
  })

/** Lists the device of each claim. */
async function claimedDevices(): Promise<readonly unknown[]> {
  const { items } = await getObject('resourceclaims', IN_SPACE)
  return items.map(({ status }: PlainObject) => status?.allocation?.devices.results[0]?.device)
}

/** Asks the Model for a byte. @returns the byte, or the text of the error. */
type Ask = (byte: number) => Promise<number | string>

async function openRouter(t: Test, modelName: string): Promise<Ask> {
  const [router] = await openWorkloads(SPACE).pods('app.kubernetes.io/component=router')
  const client = new InferenceClient({ address: `${router?.['status'].podIP}:8001` })
  t.teardown(() => client.close())
  return async (byte) => {
    const data = Uint8Array.of(byte)
    const inputs = [{ name: 'x', datatype: 'UINT8' as const, shape: [1], data }]
    try {
      const { outputs } = await client.infer({ modelName, inputs })
      return outputs[0]?.data[0] ?? 'no output'
    } catch (error) {
      return String(errorFields(error).message)
    }
  }
}

await t.test('Models on GPUs', { skip: withoutTuttiImages() }, async (t) => {
  const folder = await writeRepository(t)
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await install()

  await t.test('the import of a repository with KIND_GPU has a device and runs', async (t) => {
    const flags = ['--storage-uri-prefix=pvc://models', '--format=json']
    const { out } = await runTutti(['import', 'triton', folder, ...flags])
    const { manifests }: { readonly manifests: readonly PlainObject[] } = JSON.parse(out)
    t.match(manifests, [{ metadata: { name: 'card' }, spec: { accelerator: { count: 1 } } }])
    for (const { spec, metadata, ...rest } of manifests) {
      const accelerator = { ...spec.accelerator, resourceName: CARD }
      await apply({
        ...rest,
        metadata: { ...metadata, namespace: SPACE },
        spec: { ...spec, accelerator },
      })
    }
    await untilReady('card')
    const [pod = {}] = await openWorkloads(SPACE).pods('tutti.dev/model=card')
    t.match(mainOf(pod)['resources'].limits, { [CARD]: '1' })
    t.equal(await (await openRouter(t, 'card'))(7), 7)
  })

  await t.test('an update waits for a device that is free', async (t) => {
    await holdCard()
    await update('card', 'a')
    const told = await conditionOf('card', 'Degraded', 'NoFreeDevice')
    t.match(told, /Insufficient gpu\.example\.com\/card.* set rollout\.whenFull: Replace/)
    t.equal(await (await openRouter(t, 'card'))(8), 8, 'the old pod serves')
    await kubectl('delete', 'pod', 'holder', IN_SPACE)
    await untilNoted('card', 'a')
    await untilReady('card')
  })

  await t.test('or takes the device of the old pod', async (t) => {
    await holdCard()
    await update('card', 'b', { rollout: { whenFull: 'Replace' } })
    await untilNoted('card', 'b')
    await untilReady('card')
    t.equal(await (await openRouter(t, 'card'))(9), 9)
  })

  await t.test('a device that fails for good: the container is replaced', async (t) => {
    const [before = {}] = await openWorkloads(SPACE).pods('tutti.dev/model=card')
    const ask = await openRouter(t, 'card')
    const answers: (number | string)[] = [await ask(255)]
    while (/illegal memory access/.test(String(answers.at(-1)))) answers.push(await ask(1))
    t.equal(answers.length - 1, 6, 'three executions of each of two processes')
    await until('the container has started again', async () => {
      const [pod] = await openWorkloads(SPACE).pods('tutti.dev/model=card')
      const [main] = pod?.['status'].containerStatuses ?? []
      if (main?.ready !== true || main.restartCount !== 1) return false
      t.equal(pod?.['metadata'].uid, before['metadata'].uid, 'in the same pod')
      t.equal(main.lastState.terminated.exitCode, 70)
      return true
    })
    await untilReady('card')
    t.equal(await ask(2), 2)
    const { status } = await getObject('model', 'card', IN_SPACE)
    t.match(status.lastFailure, { exitCode: 70, message: /illegal memory access/ })
  })

  await t.test('a claim gives a device, for an update too', async (t) => {
    const expression = `device.driver == '${DRIVER}'`
    t.teardown(() => kubectl('delete', 'deviceclass', CLAIMED, '--ignore-not-found'))
    await apply(
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'DeviceClass',
        metadata: { name: CLAIMED },
        spec: { selectors: [{ cel: { expression } }] },
      },
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'ResourceClaimTemplate',
        metadata: { namespace: SPACE, name: CLAIMED },
        spec: {
          spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: CLAIMED } }] } },
        },
      },
      {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Model',
        metadata: { namespace: SPACE, name: 'claiming' },
        spec: {
          modelFormat: { name: 'python' },
          storageUri: 'pvc://models/card',
          // The device of the claim is pretended, so nothing may ask CUDA for it.
          instances: { count: 1, kind: 'KIND_MODEL' },
          accelerator: { claims: [{ name: 'gpu', resourceClaimTemplateName: CLAIMED }] },
          rollout: { whenFull: 'Replace' },
        },
      },
    )
    await untilReady('claiming')
    t.equal(await (await openRouter(t, 'claiming'))(3), 3)
    t.same(await claimedDevices(), ['gpu-0'])
    await update('claiming', 'a')
    await untilNoted('claiming', 'a')
    await untilReady('claiming')
    t.equal(await (await openRouter(t, 'claiming'))(4), 4)
    t.same(await claimedDevices(), ['gpu-0'], 'the claim of the old pod is gone')
  })
})
