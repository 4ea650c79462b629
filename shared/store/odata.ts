/** A filter of the table service: values are quoted as it wants them, so that none can end its quotes (OData 3.0 literals). */
export function odata(texts: TemplateStringsArray, ...values: readonly (string | number | Date)[]): string {
  return texts.reduce((filter, text, i) => `${filter}${literal(values[i - 1] ?? '')}${text}`);
}

function literal(value: string | number | Date): string {
  if (value instanceof Date) return `datetime'${value.toISOString()}'`;
  return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;
}
