import { type ProcessEnvironment, printable, renderJsonLine, reportProblem } from '@tutti/chassis'
import {
  INFER_FLAGS,
  type InferFlags,
  type ModelClient,
  openClient,
  readInputs,
  readModelName,
  readVersion,
} from '@tutti/command-line/client'
import { withFlags } from '@tutti/command-line/command'
import type { InferResponse } from '@tutti/protocol'
import { InferResult } from './infer-result.ts'
import { namingInputs, namingServer } from './refusals.ts'
import { summarizeTensor, toJsonData } from './tensor-text.ts'
import { missingOutputs, readOutputFiles, storeOutputs } from './write-output.ts'

export const inferCommand = withFlags(
  {
    usage: 'tutti infer MODEL --input NAME=VALUE [FLAGS]',
    flags: INFER_FLAGS,
    operands: ['model'],
    result: InferResult,
  },
  async ({ flags, positionals }, environment) => {
    const model = readModelName(positionals)
    const client = await openClient(flags, environment)
    try {
      return await inferOnce(client, { model, flags, environment })
    } finally {
      client.close()
    }
  },
)

/** @returns the exit code. */
async function inferOnce(
  client: ModelClient,
  o: {
    readonly model: string
    readonly flags: InferFlags
    readonly environment: ProcessEnvironment
  },
): Promise<number> {
  const { flags, environment } = o
  const version = readVersion(flags)
  const metadata = await client.metadata(o.model, version).catch((error: unknown) => {
    return namingServer(error, { client, model: o.model, url: flags.url })
  })
  const inputs = await readInputs(metadata, flags, environment)
  const files = readOutputFiles(flags.output, metadata.outputs)
  const request = { modelName: o.model, modelVersion: version, inputs }
  const startedAt = performance.now()
  let index = 0
  let code = 0
  const report = (problem: Error): void => {
    code = 1
    reportProblem('tutti infer', problem, environment)
  }
  const came = new Set<string>()
  const absent = metadata.inputs.filter(({ name }) => inputs.every((each) => each.name !== name))
  for await (const response of namingInputs(client.infer(request, metadata), absent)) {
    index += 1
    const { stored, problems } = await storeOutputs(response, files, index)
    environment.out(
      flags.format === 'json'
        ? renderJson(response, stored)
        : renderText(response, stored, performance.now() - startedAt),
    )
    problems.forEach(report)
    for (const { name } of response.outputs) came.add(name)
  }
  if (index === 0 && flags.format === 'text') environment.out('no responses\n')
  missingOutputs(files, came).forEach(report)
  return code
}

function renderText(
  { modelName, modelVersion, outputs }: InferResponse,
  stored: ReadonlyMap<string, string>,
  durationMs: number,
): string {
  const names = outputs.map(({ name }) => printable(name))
  const width = Math.max(0, ...names.map((name) => name.length))
  const lines = outputs.map((tensor, i) => {
    const file = stored.get(tensor.name)
    const where = file === undefined ? '' : `  -> ${printable(file)}`
    return `  ${names[i]?.padEnd(width)}  ${summarizeTensor(tensor)}${where}\n`
  })
  const model = printable(`${modelName}, version ${modelVersion}`)
  return `${model}: ${durationMs.toFixed(1)} ms\n${lines.join('')}`
}

/** Renders a response as one line. */
function renderJson(
  { modelName, modelVersion, id, outputs }: InferResponse,
  stored: ReadonlyMap<string, string>,
): string {
  const shown = outputs.map((tensor) => {
    const { name, datatype, shape } = tensor
    const file = stored.get(name)
    return {
      name,
      datatype,
      shape,
      ...(file === undefined ? { data: toJsonData(tensor) } : { file }),
    }
  })
  const response: InferResult = { model: modelName, version: modelVersion, id, outputs: shown }
  return renderJsonLine(response)
}
