// needs: python
import t from 'tap'
import { PageRun } from './run-snippet.ts'
import { findSnippets } from './snippets.ts'

t.setTimeout(300_000)

const PAGE = 'docs/quick-start.md'

// Executes docs/quick-start.md: npm run tutti -- bench
await t.test(`the load of ${PAGE}, a second for each`, async (t) => {
  const run = await PageRun.open(t, PAGE)
  const blocks = findSnippets(PAGE).filter(({ text }) =>
    /^npm run tutti -- (serve|bench) /.test(text),
  )
  t.equal(blocks.length, 2)
  for (const block of blocks) {
    const { code, out, err } = await run.execute(block)
    t.equal(code, 0, `${PAGE}:${block.line}: ${err}${out}`)
    if (block.text.includes(' bench ')) {
      t.match(out, /^pre_gfpgan, 1 s for each load/m)
      t.match(out, /^A .*16.*$/m)
    }
  }
  await run.close()
})
