// oxlint-disable-next-line import/no-unassigned-import -- it has to run before schemas are made
import './jitless.ts'
import { render } from 'preact'
import { App } from './app.tsx'

const root = document.getElementById('app')
if (root !== null) render(<App />, root)
