"""Small workbooks for tests, written by hand."""

import zipfile
from xml.sax.saxutils import escape

XLSX = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.'
    'sheet.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship '
    'Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
}
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def cell(value):
    if value is None:
        return "<c/>"
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def workbook(path, **sheets):
    """Write a workbook of the few parts that a reader needs."""
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/s{i}.xml"/>' for i in range(len(sheets))
    )
    listed = "".join(f'<sheet name="{name}" sheetId="{i + 1}" r:id="r{i}"/>' for i, name in enumerate(sheets))
    with zipfile.ZipFile(path, "w") as packed:
        for name, part in XLSX.items():
            packed.writestr(name, part)
        packed.writestr("xl/workbook.xml", f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>')
        relations = "http://schemas.openxmlformats.org/package/2006/relationships"
        packed.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{relations}">{links}</Relationships>')
        for i, rows in enumerate(sheets.values()):
            body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            packed.writestr(f"xl/worksheets/s{i}.xml", f"<worksheet {MAIN}><sheetData>{body}</sheetData></worksheet>")
    return path
