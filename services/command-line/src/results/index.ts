export { absent, DoctorResult, defineFindings, type Finding, renderFindings } from './finding.ts'
export { known, listOf } from './result-schema.ts'
export { countCharacters, cutText, fitText, toColumns } from './text-table.ts'
