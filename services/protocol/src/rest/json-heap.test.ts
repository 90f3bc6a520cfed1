import { Worker } from 'node:worker_threads'
import t from 'tap'
import { jsonNeeds } from './json-heap.ts'

t.setTimeout(600_000)

/** Bytes of a thread that has loaded the parser and nothing else. */
const REST_BYTES = 48 * 2 ** 20
const BYTES = 6 * 2 ** 20

const input = (datatype: string, count: number, data: string): string =>
  `{"inputs":[{"name":"x","datatype":"${datatype}","shape":[${count}],"data":[${data}]}]}`

/** The item as often as it fits. */
function list(item: string): string {
  return `${`${item},`.repeat(BYTES / (item.length + 1))}${item}`
}

const DOCUMENTS: Readonly<Record<string, string>> = {
  integers: input('INT64', BYTES / 2 + 1, list('1')),
  numbers: input('FP64', BYTES / 5 + 1, list('1.25')),
  'large integers': input('INT64', 1, list('9007199254740993')),
  mixed: input('FP32', 1, list('1,1.5,""')),
  texts: input('BYTES', 1, list('"ab"')),
  'other texts': input('BYTES', 1, list('"ж"')),
  names: input('FP32', BYTES / 4 + 1, list('NaN')),
  arrays: `[${list('[]')}]`,
  'arrays of one': `[${list('[1]')}]`,
  objects: `[${list('{}')}]`,
  members: `[${list('{"a":1}')}]`,
  'different members': `{${Array.from({ length: BYTES / 16 }, (_, i) => `"k${i}":1`).join(',')}}`,
  'objects of different members': `[${Array.from({ length: BYTES / 20 }, (_, i) => `{"k${i}":1}`).join(',')}]`,
}

const MODULE = new URL(
  `./decode-request.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
  import.meta.url,
)
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
import(workerData.module).then(({ decodeRestRequest }) => {
  try {
    decodeRestRequest({ body: workerData.body, modelName: 'm', config: undefined })
  } catch {}
  parentPort.postMessage('done')
})`

/** Whether a thread with so much memory parses a document, or refuses it. */
function fits(body: Buffer, heapBytes: number): Promise<boolean> {
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: { body, module: MODULE.href },
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapBytes / 2 ** 20) },
  })
  return new Promise((resolve) => {
    worker.once('message', () => resolve(true)).once('error', () => resolve(false))
  })
}

await t.test('a document takes no more memory than is told before it is parsed', async (t) => {
  for (const [name, text] of Object.entries(DOCUMENTS)) {
    const body = Buffer.from(text)
    const { heapBytes, values } = jsonNeeds(body)
    t.ok(await fits(body, heapBytes + REST_BYTES), `${name}: ${values} values, ${heapBytes} bytes`)
  }
})
