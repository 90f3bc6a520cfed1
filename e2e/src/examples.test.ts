// needs: python
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, readdir, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startProcess, until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import {
  type Checkout,
  EXAMPLE_COMMANDS,
  EXAMPLE_FOLDERS,
  EXAMPLE_MANIFESTS,
  EXAMPLES,
  exampleRepositories,
  joinExampleManifests,
  prepareCheckout,
} from './example-commands.ts'
import { ROOT, runTutti, serve } from './serving.ts'
import { PYTHON, PYTHON_FLAGS } from './triton-client.ts'

t.setTimeout(300_000)

const STORAGE = 'image://tutti/samples:0.1.0=.'
await t.test('every example is served by one command, of a manifest that is valid', async (t) => {
  t.same(EXAMPLE_FOLDERS, [
    'batch',
    'classifier',
    'crops',
    'detector',
    'face',
    'fallback',
    'ocr',
    'read-text',
    'text-stream',
    'two-tier',
  ])
  for (const [name, { serves }] of EXAMPLE_COMMANDS) {
    const manifest = name === 'batch' ? 'classifier' : name
    const file = `examples/${manifest}/manifest.yaml`
    t.equal(serves, `npm run tutti -- serve -f ${file} --storage-map ${STORAGE}`, name)
  }
  const repositories = await exampleRepositories()
  for (const manifest of EXAMPLE_MANIFESTS) {
    const argv = ['validate', `-f=${ROOT}${manifest}`, ...repositories]
    t.match(await runTutti(argv), { code: 0, out: /, no errors/ }, manifest)
  }
})

/** Compares two pictures. @returns the mean and the greatest difference of their values, 0 to 255. */
async function differenceOf({ run }: Checkout, one: string, other: string) {
  const program = `import numpy as np; from PIL import Image
a, b = (np.asarray(Image.open(path), int) for path in ("${one}", "${other}"))
d = abs(a - b); print(a.shape == b.shape, d.mean(), d.max())`
  const { out } = await run(`python -c '${program}'`)
  const [isSameShape, mean, most] = out.trim().split(' ')
  return { isSameShape, mean: Number(mean), most: Number(most) }
}

/** The rows of a CSV of the batch job: what is exact, and the probabilities. */
function rowsOf(csv: string) {
  const rows = csv
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(','))
  return {
    names: rows.map(([name, label]) => [name, label]),
    values: rows.map((row) => Number(row[2])),
  }
}

function checkRows(t: Test, found: string, wanted: string): void {
  const [ours, theirs] = [rowsOf(found), rowsOf(wanted)]
  t.equal(ours.names.length, 24)
  t.same(ours.names, theirs.names)
  t.ok(ours.values.every((value, i) => Math.abs(value - (theirs.values[i] ?? 2)) < 0.005))
}

const needsPython = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : false

// The blocks of each README.md of an example.
await t.test('the examples answer as their READMEs say', { skip: needsPython }, async (t) => {
  const file = join(t.testdir(), 'all.yaml')
  await writeFile(file, await joinExampleManifests())
  const flags = [`-f=${file}`, `--storage-map=${STORAGE.replace(/\.$/, ROOT)}`, ...PYTHON_FLAGS]
  const { grpcPort } = await serve(t, { repositories: [], flags })
  const checkout = await prepareCheckout(t, grpcPort)
  const { run, read } = checkout

  const exact = ['ocr', 'classifier', 'detector', 'crops', 'two-tier', 'fallback', 'text-stream']
  for (const name of exact) {
    await t.test(`${name}, to the byte`, async (t) => {
      const wanted = await read(`examples/${name}/expected.txt`)
      t.same(await run(EXAMPLE_COMMANDS.get(name)?.asks ?? ''), { code: 0, out: wanted, err: '' })
    })
  }

  await t.test('face: the picture, with a small tolerance', async (t) => {
    t.same(await run(EXAMPLE_COMMANDS.get('face')?.asks ?? ''), { code: 0, out: '', err: '' })
    const wanted = 'examples/face/expected.png'
    const near = await differenceOf(checkout, 'restored.png', wanted)
    t.equal(near.isSameShape, 'True')
    t.ok(near.mean < 0.05 && near.most <= 4, JSON.stringify(near))
    const far = await differenceOf(checkout, 'examples/face/input.png', wanted)
    t.ok(far.mean > 2, 'which is not the degraded one')
  })

  await t.test('batch: the whole folder', async (t) => {
    const { code, out } = await run(EXAMPLE_COMMANDS.get('batch')?.asks ?? '')
    t.same([code, out], [0, '0 pictures were classified before, 24 now\n'])
    checkRows(t, await read('shapes.csv'), await read('examples/batch/expected.csv'))
  })

  await t.test('batch: killed in the middle, it goes on there', async (t) => {
    const { folder, env } = checkout
    const pictures = join(folder, 'examples/batch/pictures')
    const [first = '', second = ''] = (await readdir(pictures)).toSorted().slice(11, 13)
    // Opening a pipe that has no writer does not end: the job stands still there, with those before it done.
    await rm(join(pictures, first))
    await promisify(execFile)('mkfifo', [join(pictures, first)])
    const script = 'examples/batch/classify_folder.py'
    const args = [script, 'examples/batch/pictures', 'again.csv', '--in-flight=1']
    const job = await startProcess('python', args, { cwd: folder, env })
    t.teardown(() => job.stop('SIGKILL'))
    const written = () => read('again.csv.part').catch(() => '')
    await until(
      () => 'eleven rows are written',
      async () => (await written()).split('\n').length === 12,
    )
    await job.stop('SIGKILL')
    await rm(join(pictures, first))
    await cp(`${EXAMPLES}/batch/pictures/${first}`, join(pictures, first))
    // A row that a kill cut short, a picture that is none, and a server that is not there at the first attempt.
    await writeFile(join(folder, 'again.csv.part'), `${await written()}${second},tri`)
    await writeFile(join(pictures, 'none.png'), 'no picture')
    const away = await startLateServer(t, grpcPort)
    const again = `python ${script} examples/batch/pictures again.csv --url 127.0.0.1:${away.port}`
    t.match(await run(again), {
      code: 1,
      err: /none\.png: cannot identify image file.*\n1 of 25 pictures are not classified/,
    })
    t.ok(away.refused() > 0)
    t.equal((await written()).split('\n').length, 25)
    await rm(join(pictures, 'none.png'))
    t.match(await run(again), { code: 0, out: '24 pictures were classified before, 0 now\n' })
    checkRows(t, await read('again.csv'), await read('examples/batch/expected.csv'))
    t.equal(await written(), '', 'nothing is left of the part')
  })

  await t.test('batch: a server that stays away ends the job', async (t) => {
    const late = await startLateServer(t, grpcPort, Number.POSITIVE_INFINITY)
    const command = `python examples/batch/classify_folder.py examples/batch/pictures never.csv --attempts=1 --url 127.0.0.1:${late.port}`
    t.match(await run(command), { code: 1, err: /UNAVAILABLE[^]*\nrun again to go on\n$/ })
  })
})

/** Passes connections on to a port of this machine, but for the first ones, which it ends at once. */
async function startLateServer(t: Test, port: number, refuses = 1) {
  let count = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    count += 1
    if (count <= refuses) {
      socket.destroy()
      return
    }
    const onward = connect(port, '127.0.0.1')
    onward.on('error', () => socket.destroy())
    socket.on('close', () => onward.destroy())
    onward.on('close', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { port: address.port, refused: () => Math.min(count, refuses) }
}
