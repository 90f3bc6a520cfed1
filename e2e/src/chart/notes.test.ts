// needs: apiserver
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { CHART, helm, parseAll, type Values } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

await t.test('who may not read metrics is told after the installation', WITH_HELM, async (t) => {
  const chart = join(t.testdir({}), 'tutti')
  await cp(CHART, chart, { recursive: true })
  // Helm shows its notes only where there is a cluster to install to.
  const notes = join(chart, 'templates', 'NOTES.txt')
  const text = await readFile(notes, 'utf8')
  await rm(notes)
  const define = `{{- define "test.notes" -}}${text}{{- end -}}`
  await writeFile(join(chart, 'templates', '_notes.tpl'), define)
  const notesFile = 'templates/notes.yaml'
  const args = ['--kube-version=1.34.4', `--show-only=${notesFile}`]
  await writeFile(join(chart, notesFile), 'notes: {{ include "test.notes" . | toJson }}\n')
  const warnings = async (values: Values): Promise<string[]> => {
    const sets = Object.entries(values).map(
      ([key, one]) => `--set-json=${key}=${JSON.stringify(one)}`,
    )
    const run = await helm('template', 'tutti', chart, ...args, ...sets)
    t.equal(run.code, 0, run.err)
    const [{ notes: said } = { notes: '' }] = parseAll(run.out)
    return String(said).match(/networkPolicy\.\w+ is empty/g) ?? []
  }
  const monitors = { 'metrics.serviceMonitor.enabled': true, 'metrics.podMonitor.enabled': true }
  t.same(await warnings({}), [])
  t.same(await warnings(monitors), [
    'networkPolicy.ingressFrom is empty',
    'networkPolicy.scrapeNamespaces is empty',
  ])
  const named = { 'networkPolicy.scrapeNamespaces': ['monitoring'] }
  t.same(await warnings({ ...monitors, ...named }), ['networkPolicy.ingressFrom is empty'])
  t.same(await warnings({ ...monitors, 'networkPolicy.enabled': false }), [])
})
