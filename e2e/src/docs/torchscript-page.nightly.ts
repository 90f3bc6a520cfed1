// needs: python, torch
import t from 'tap'
import { TORCH_PYTHON, withoutTorch } from '../triton-client.ts'
import { PageRun } from './run-snippet.ts'
import { findSnippets } from './snippets.ts'

t.setTimeout(600_000)

const PAGE = 'docs/torchscript.md'
const snippets = findSnippets(PAGE)

await t.test(`${PAGE}, with PyTorch`, { skip: withoutTorch() }, async (t) => {
  const run = await PageRun.open(t, PAGE, TORCH_PYTHON)
  const outputs: string[] = []
  for (const snippet of snippets) {
    const { code, out, err } = await run.execute(snippet)
    t.equal(code, 0, `${PAGE}:${snippet.line}: ${err}${out}`)
    outputs.push(out)
  }
  t.match(outputs.join(''), '  brightness__0  FP32[1,1]  0.5\n')
  t.match(outputs.join(''), /\n {2}brightness {2}FP32\[1,1\] {2}0\.\d+\n/)
  t.match(outputs.join(''), /^brightness, 1 s for each load/m)
  await run.close()
})
