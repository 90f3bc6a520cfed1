import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { adderFrom, chain, SPACE } from './adders.ts'
import { apply, kubectl } from './kubectl.ts'
import { openPlugin } from './kubectl-plugin.ts'

const FILES = 'pvc://models/plus-one'
/** Too little for a process of Node to start. */
const MEMORY = '32Mi'
const CAUSE = /^[^]*\nEnsemble of-\S+ +NotReady +0\/1 steps +(.*)\n/

/** Models, what each is broken by, and what the tree of its Ensemble then says; one Model is not there. */
const BROKEN: Readonly<Record<string, { readonly spec?: PlainObject; readonly cause: RegExp }>> = {
  'without-image': {
    spec: inPod({
      containers: [
        { name: 'main', image: 'registry.invalid/step:1', imagePullPolicy: 'IfNotPresent' },
      ],
    }),
    cause:
      /^(ImagePullBackOff|ErrImagePull): not ready: step-0: Model "without-image": pod ".*", container "main": .*registry\.invalid\/step:1/,
  },
  'without-graph': {
    spec: { storageUri: 'pvc://models/no-graph' },
    cause:
      /^ModelLoadFailed: not ready: step-0: Model "without-graph": pod ".*", container "main": version 1: .*not a valid ONNX model/,
  },
  'without-memory': {
    spec: { storageUri: FILES, resources: { limits: { memory: MEMORY } } },
    cause:
      /^OOMKilled: not ready: step-0: Model "without-memory": pod ".*": container "main" ended with exit code 137$/,
  },
  'without-node': {
    spec: inPod({ nodeSelector: { 'tutti.dev/test': 'nowhere' } }),
    cause:
      /^Unschedulable: not ready: step-0: Model "without-node": pod ".*": 0\/1 nodes are available: 1 node\(s\) didn't match/,
  },
  'without-volume': {
    spec: inPod({
      containers: [{ name: 'main', volumeMounts: [{ name: 'lost', mountPath: '/lost' }] }],
      volumes: [{ name: 'lost', secret: { secretName: 'nowhere' } }],
    }),
    cause:
      /^FailedMount: not ready: step-0: Model "without-volume": pod ".*": MountVolume\.SetUp failed for volume "lost" *: secret "nowhere" not found/,
  },
  'without-claim': {
    spec: { storageUri: 'pvc://nowhere/model' },
    cause:
      /^Unschedulable: not ready: step-0: Model "without-claim": pod ".*": .*persistentvolumeclaim "nowhere" not found/,
  },
  'without-program': {
    spec: inPod({ containers: [{ name: 'main', command: ['nowhere'] }] }),
    cause:
      /^(RunContainerError|StartError|CrashLoopBackOff): not ready: step-0: Model "without-program": pod ".*", container "main": .*nowhere/,
  },
  'without-secret': {
    spec: inPod({
      containers: [
        {
          name: 'main',
          env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'nowhere', key: 'x' } } }],
        },
      ],
    }),
    cause:
      /^CreateContainerConfigError: not ready: step-0: Model "without-secret": pod ".*", container "main": secret "nowhere" not found/,
  },
  'without-account': {
    spec: inPod({ serviceAccountName: 'nowhere' }),
    cause:
      /^FailedCreate: not ready: step-0: Model "without-account": .*serviceaccount "nowhere" not found/,
  },
  absent: {
    cause: /^NotFound: step "step-0", Model "absent": no Model or Ensemble serves 'absent' yet/,
  },
}

function inPod(spec: PlainObject): PlainObject {
  return { storageUri: FILES, podTemplate: { spec } }
}

/** On the loopback of its pod alone. */
const READ_CONSOLE = `
fetch('http://127.0.0.1:8003/console/api/overview').then((r) => r.text()).then(console.log)`

/**
 * `kubectl tutti trace` shows a request to the Ensemble `two`, which is not broken, and `doctor` finds all that the cluster has.
 * Ensembles that are broken in ten ways, all at once: `kubectl tutti status` names the cause of each, and the console
 * lists them.
 *
 * @param models - what the claim `models` holds.
 */
export async function showStatus(t: Test, models: string): Promise<void> {
  const folder = join(models, 'no-graph')
  await mkdir(join(folder, '1'), { recursive: true })
  await cp(join(models, 'plus-one', 'config.pbtxt'), join(folder, 'config.pbtxt'))
  await writeFile(join(folder, '1', 'model.onnx'), 'no graph')
  const kubectlTutti = await openPlugin(t)
  const traced = await kubectlTutti('trace', 'two', '-n', SPACE, '--input=x=[1,2]', '-o', 'json')
  t.equal(traced.code, 0, traced.err)
  t.match(JSON.parse(traced.out), { model: 'two', criticalPath: ['step-0', 'step-1'] })
  const examined = await kubectlTutti('doctor', '-n', SPACE)
  for (const check of [
    'kubernetes',
    'custom resources',
    'operator',
    'nats',
    'namespace',
    'rights',
  ]) {
    t.match(examined.out, new RegExp(`^ok +${check}: `, 'm'), check)
  }
  const objects = Object.entries(BROKEN).flatMap(([name, { spec }]) => [
    ...(spec === undefined ? [] : [adderFrom(name, spec)]),
    chain(`of-${name}`, [name]),
  ])
  await apply(...objects)
  for (const [name, { cause }] of Object.entries(BROKEN)) {
    let last = ''
    await until(
      () => `the tree of ${name} names its cause; it says ${last}`,
      async () => {
        const { code, out, err } = await kubectlTutti('status', `of-${name}`, '-n', SPACE)
        last = `${code} ${out}${err}`
        return code === 1 && cause.test(CAUSE.exec(out)?.[1] ?? '')
      },
    )
    t.comment(last)
  }
  await untilListed(objects)
  const names = objects.map(({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`)
  await kubectl('delete', ...names, `--namespace=${SPACE}`)
}

/** Waits until the console of the namespace's router lists all of them, one with its cause; it reads every ten seconds. */
async function untilListed(objects: readonly PlainObject[]): Promise<void> {
  const router = ['deployment/tutti-router', `--namespace=${SPACE}`]
  let said = ''
  await until(
    () => `the console lists what is broken; it says ${said}`,
    async () => {
      said = await kubectl('exec', ...router, '--', 'node', '--eval', READ_CONSOLE)
      const { unready } = JSON.parse(said).cluster
      const rows: readonly string[] = unready.map(
        (one: PlainObject) => `${one['kind']} ${one['name']} ${one['reason']}`,
      )
      const has = (start: string): boolean => rows.some((row) => row.startsWith(start))
      return (
        objects.every(({ kind, metadata }) => has(`${kind} ${metadata.name} `)) &&
        ['ImagePullBackOff', 'ErrImagePull'].some((reason) => has(`Model without-image ${reason}`))
      )
    },
  )
}
